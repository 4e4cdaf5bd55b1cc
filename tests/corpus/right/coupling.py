"""The same, with Flax's convolutions.

original: coupling
family: plain port
"""

import jax
import jax.numpy as jnp
from flax import nnx


class Conv(nnx.Conv):
    def __init__(self, inputs, outputs, *, rngs):
        bound = (9 * inputs) ** -0.5
        uniform = lambda key, shape, dtype, out_sharding=None: jax.random.uniform(key, shape, dtype, -bound, bound)
        super().__init__(inputs, outputs, (3, 3), padding=1, kernel_init=uniform, bias_init=uniform, rngs=rngs)

    def __call__(self, x):
        return jnp.moveaxis(super().__call__(jnp.moveaxis(x, 1, -1)), -1, 1)


class M(nnx.Module):
    def __init__(self, channels=12, width=96, *, rngs):
        self.first = Conv(channels // 2, width, rngs=rngs)
        self.last = Conv(width, channels, rngs=rngs)
        self.scale = nnx.Param(jnp.zeros((1, channels, 1, 1)))

    def __call__(self, x):
        kept, moved = jnp.split(x, 2, 1)
        log_s, shift = jnp.split(self.last(jax.nn.relu(self.first(kept))) * jnp.exp(self.scale[...] * 3), 2, 1)
        s = jax.nn.sigmoid(log_s + 2)
        logdet = jnp.log(s).reshape(x.shape[0], -1).sum(1)
        return jnp.concatenate([kept, (moved + shift) * s], 1), logdet
