"""The padding is the remainder of minus the length.

original: remainders
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, window=4, *, rngs):
        self.fc = Linear(6, 6, rngs=rngs)
        self.window = window

    def __call__(self, x):
        b, n, d = x.shape
        x = jnp.pad(x, ((0, 0), (0, -n % self.window), (0, 0)))
        windows = self.fc(x).reshape(b, -1, self.window, d)
        weights = jax.nn.softmax(windows.mean(axis=(1, 3)), axis=-1)
        return (windows * weights[:, None, :, None]).reshape(b, -1, d)[:, :n]
