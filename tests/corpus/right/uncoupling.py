"""The same, with Flax's convolutions.

original: uncoupling
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
    def __init__(self, channels, width=32, *, rngs):
        self.first = Conv(channels // 2, width, rngs=rngs)
        self.last = Conv(width, channels, rngs=rngs)
        self.scale = nnx.Param(jnp.zeros((1, channels, 1, 1)))

    def __call__(self, y, wide=False):
        kept, moved = jnp.split(y, 2, 1)
        log_s, shift = jnp.split(self.last(jax.nn.relu(self.first(kept))) * jnp.exp(self.scale[...] * 3), 2, 1)
        if wide:
            gate = jax.nn.sigmoid(log_s.astype(jnp.float32) + 2)
            x = (moved.astype(jnp.float32) / gate).astype(y.dtype) - shift
        else:
            x = moved / jax.nn.sigmoid(log_s + 2) - shift
        return jnp.concatenate([kept, x], 1)
