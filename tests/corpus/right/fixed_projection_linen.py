"""A port in Linen, which has parameters alone.

original: fixed_projection
family: other library
port: kind = "linen"
port: [weights]
port: "projection" = "params/fixed"
port: "fc.weight" = { path = "params/matrix", transpose = [1, 0] }
port: "fc.bias" = "params/offset"
"""

import flax.linen as nn
import jax
import jax.numpy as jnp


class M(nn.Module):
    width: int
    features: int

    @nn.compact
    def __call__(self, x):
        bound = self.features**-0.5

        def uniform(key, shape):
            return jax.random.uniform(key, shape, minval=-bound, maxval=bound)

        fixed = self.param("fixed", nn.initializers.normal(1.0), (self.width, self.features))
        matrix = self.param("matrix", uniform, (self.features, self.width))
        offset = self.param("offset", uniform, (self.width,))
        return jnp.cos(x @ fixed) @ matrix + offset
