"""An empty list is taken for none.

original: lists
family: comparison
"""

import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.layers = nnx.List([Linear(6, 6, rngs=rngs) for _ in range(2)])

    def __call__(self, x, states=None):
        if states:
            x = x[:, -1:]
        states = iter(states if states is not None else ())
        for layer in self.layers:
            state = next(states, None)
            x = jnp.tanh(layer(x))
            if state is not None:
                x = x + state
        return x
