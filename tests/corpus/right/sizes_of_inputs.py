"""The plain port.

original: sizes_of_inputs
family: plain port
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, width, shift=0, memory=0, *, rngs):
        self.width = width
        self.shift = shift
        self.lin = Linear(width, width, rngs=rngs)
        self.memory = nnx.Param(jax.random.normal(rngs.params(), (memory, width))) if memory else None

    def __call__(self, x):
        y = self.lin(jnp.roll(x, -self.shift, 1) if self.shift else x[:, ::-1])
        if self.memory is not None:
            y = y + jax.nn.softmax(y @ self.memory[...].T, -1) @ self.memory[...]
        return (y * self.width**-0.5).reshape(x.shape[0], -1, self.width)
