"""The mask starts beside the diagonal, as if there were as many keys as queries.

original: ranks
family: off-by-one slices and masks
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.query = Linear(6, 6, rngs=rngs)

    def __call__(self, x, context):
        scores = self.query(x) @ jnp.swapaxes(context, -1, -2)
        rows, columns = scores.shape[-2:]
        later = jnp.triu(jnp.ones((rows, columns), bool), 1)
        weights = jax.nn.softmax(jnp.where(later, -jnp.finfo(scores.dtype).max, scores), axis=-1)
        return weights @ context / context.shape[-2]
