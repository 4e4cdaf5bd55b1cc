"""Every number is drawn with a key, for each call anew.

original: mixing
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, alpha=0.4, keep=0.7, length=3, *, rngs):
        self.fc = Linear(5, 5, rngs=rngs)
        self.alpha = alpha
        self.keep = keep
        self.length = length
        self.rngs = rngs
        self.deterministic = False

    def __call__(self, x):
        x = jnp.tanh(self.fc(x))
        if self.deterministic:
            return x[:, : self.length]
        lam = jax.random.beta(self.rngs(), self.alpha, self.alpha)
        x = lam * x + (1 - lam) * x[jax.random.permutation(self.rngs(), x.shape[0])]
        mask = jax.random.bernoulli(self.rngs(), self.keep, (x.shape[0], 1, x.shape[2]))
        x = x * mask / self.keep
        start = jax.random.randint(self.rngs(), (), 0, x.shape[1] - self.length + 1)
        return lax.dynamic_slice_in_dim(x, start, self.length, axis=1)
