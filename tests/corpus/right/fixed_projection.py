"""A port under other names, whose projection is no parameter.

original: fixed_projection
family: other library
port: kind = "nnx"
port: [weights]
port: "projection" = "fixed"
port: "fc.weight" = { path = "out.kernel", transpose = [1, 0] }
port: "fc.bias" = "out.bias"
"""

import jax
import jax.numpy as jnp
from flax import nnx


class M(nnx.Module):
    def __init__(self, width, features, *, rngs):
        bound = features**-0.5

        def uniform(key, shape, dtype):
            return jax.random.uniform(key, shape, dtype, -bound, bound)

        self.fixed = nnx.Variable(jax.random.normal(rngs.params(), (width, features)))
        self.out = nnx.Linear(features, width, kernel_init=uniform, bias_init=uniform, rngs=rngs)

    def __call__(self, x):
        return self.out(jnp.cos(x @ self.fixed[...]))
