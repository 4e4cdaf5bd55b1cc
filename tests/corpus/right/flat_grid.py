"""The plain port.

original: flat_grid
family: plain port
"""

import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, d=6, *, rngs):
        self.mix = Linear(d, d, rngs=rngs)

    def __call__(self, tokens, weights):
        rows, columns = weights.shape[1:]
        grid = tokens.reshape(tokens.shape[0], rows, columns, -1) * weights[..., None]
        grid = jnp.tanh(self.mix(grid))
        return jnp.stack([grid.mean(1).max(1), grid.max(1).mean(1)], axis=1)
