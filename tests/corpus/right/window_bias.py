"""The plain port.

original: window_bias
family: plain port
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, d, side, heads, *, rngs):
        assert d % heads == 0
        self.heads, self.side = heads, side
        self.qkv = Linear(d, 3 * d, rngs=rngs)
        self.bias = nnx.Param(jax.random.normal(rngs.params(), ((2 * side - 1) ** 2, heads)))
        places = jnp.indices((side, side)).reshape(2, -1)
        apart = places[:, :, None] - places[:, None] + side - 1
        self.index = nnx.Variable(apart[0] * (2 * side - 1) + apart[1])

    def __call__(self, x):
        batch, count, d = x.shape
        q, k, v = jnp.moveaxis(self.qkv(x).reshape(batch, count, 3, self.heads, d // self.heads), (2, 3), (0, 2))
        scores = q @ k.swapaxes(-1, -2) / (d // self.heads) ** 0.5
        scores = scores + jnp.moveaxis(self.bias[...][self.index[...]], -1, 0)
        return (jax.nn.softmax(scores, axis=-1) @ v).swapaxes(1, 2).reshape(x.shape)
