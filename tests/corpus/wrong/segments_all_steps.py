"""All steps are remembered.

original: segments
family: off-by-one slices and masks
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, d=5, *, rngs):
        self.step = Linear(d, d, rngs=rngs)
        self.read = Linear(d, d, rngs=rngs)

    def __call__(self, x):
        state, states = jnp.zeros_like(x[:, 0]), []
        for place in range(x.shape[1]):
            if place % 12 == 11:
                state = jax.lax.stop_gradient(state)
            state = jnp.tanh(self.step(state) + x[:, place])
            states.append(state)
        return self.read(jnp.stack(states, 1).mean(1))
