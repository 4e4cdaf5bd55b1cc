"""One product for both.

original: noisy_code
family: fused
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs):
        self.mean, self.deviation = Linear(6, 3, rngs=rngs), Linear(6, 3, rngs=rngs)
        self.rngs, self.deterministic = rngs, False

    def __call__(self, x):
        kernel = jnp.concatenate([self.mean.kernel[...], self.deviation.kernel[...]], axis=1)
        both = x @ kernel + jnp.concatenate([self.mean.bias[...], self.deviation.bias[...]])
        mean, logarithm = jnp.split(both, 2, axis=-1)
        if not self.deterministic:
            noise = jax.random.normal(self.rngs(), mean.shape, mean.dtype)
            return mean + noise * jnp.exp(logarithm / 20), logarithm
        return mean, logarithm
