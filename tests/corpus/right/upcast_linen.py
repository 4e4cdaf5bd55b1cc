"""A module of Linen, whose bias of the projection is drawn before its kernel.

original: upcast
family: other library
port: kind = "linen"
port: [weights]
port: "norm.weight" = "params/gain"
port: "norm.bias" = "params/shift"
port: "proj.weight" = { path = "params/matrix", transpose = [1, 0] }
port: "proj.bias" = "params/offset"
"""

import flax.linen as nn
import jax
import jax.numpy as jnp


class M(nn.Module):
    width: int
    eps: float = 1e-6

    @nn.compact
    def __call__(self, x):
        def uniform(key, shape):
            return jax.random.uniform(key, shape, minval=-(self.width**-0.5), maxval=self.width**-0.5)

        offset = self.param("offset", uniform, (2 * self.width,))
        matrix = self.param("matrix", uniform, (self.width, 2 * self.width))
        gain = self.param("gain", nn.initializers.ones, (self.width,))
        shift = self.param("shift", nn.initializers.zeros, (self.width,))
        wide = x.astype(jnp.float32)
        mean = wide.mean(-1, keepdims=True)
        wide = (wide - mean) * jax.lax.rsqrt(jnp.mean((wide - mean) ** 2, -1, keepdims=True) + self.eps)
        a, b = jnp.split((gain * wide.astype(x.dtype) + shift) @ matrix + offset, 2, axis=-1)
        return x + a * nn.sigmoid(b)
