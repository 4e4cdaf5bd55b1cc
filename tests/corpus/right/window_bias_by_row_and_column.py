"""The bias is indexed by rows and columns.

original: window_bias
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, d, side, heads, *, rngs):
        if d % heads:
            raise ValueError("heads must divide the width")
        self.heads, self.side = heads, side
        self.qkv = Linear(d, 3 * d, rngs=rngs)
        self.bias = nnx.Param(jax.random.normal(rngs.params(), ((2 * side - 1) ** 2, heads)))
        row, column = jnp.divmod(jnp.arange(side**2), side)
        apart = [place[:, None] - place + side - 1 for place in (row, column)]
        self.index = nnx.Variable(apart[0] * (2 * side - 1) + apart[1])

    def __call__(self, x):
        batch, count, d = x.shape
        q, k, v = (part.reshape(batch, count, self.heads, -1) for part in jnp.split(self.qkv(x), 3, axis=-1))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
        scores = scores + self.bias[...][self.index[...]].transpose(2, 0, 1)
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), v).reshape(x.shape)
