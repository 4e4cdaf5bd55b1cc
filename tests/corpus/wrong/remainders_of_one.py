"""A remainder of one is not padded, but cut off.

original: remainders
family: off-by-one slices and masks
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
        if n % self.window > 1:
            x = jnp.pad(x, ((0, 0), (0, self.window - n % self.window), (0, 0)))
        elif n % self.window:
            x = jnp.concatenate([x[:, : n // self.window * self.window], x[:, -1:], x[:, -1:], x[:, -1:], x[:, -1:]], axis=1)
        windows = self.fc(x).reshape(b, -1, self.window, d)
        weights = jax.nn.softmax(windows.mean(axis=(1, 3)), axis=-1)
        return (windows * weights[:, None, :, None]).reshape(b, -1, d)[:, :n]
