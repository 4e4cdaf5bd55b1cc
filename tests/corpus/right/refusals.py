"""What is refused is refused by other errors, in other words.

original: refusals
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
from flax import nnx

POOLS = {"mean": lambda x: x.mean(1), "last": lambda x: x[:, -1]}


class M(nnx.Module):
    def __init__(self, d, heads=2, most=10, pool="mean", *, rngs):
        if d % heads:
            raise ValueError(f"d must be a multiple of heads, not {d} and {heads}")
        self.heads, self.most, self.pool = heads, most, pool
        self.reduce = POOLS[pool]
        self.token = nnx.Embed(20, d, embedding_init=jax.nn.initializers.normal(1.0), rngs=rngs)
        self.place = nnx.Embed(most, d, embedding_init=jax.nn.initializers.normal(1.0), rngs=rngs)
        self.scale = nnx.Param(jax.random.uniform(rngs.params(), (heads,)))

    def __call__(self, ids):
        length = ids.shape[1]
        if length > self.most:
            raise ValueError(f"at most {self.most} tokens, not {length}")
        x = self.token(ids) + self.place.embedding[:length]
        x = x.reshape(*ids.shape, self.heads, -1) * self.scale[:, None]
        return self.reduce(x.reshape(*ids.shape, -1))
