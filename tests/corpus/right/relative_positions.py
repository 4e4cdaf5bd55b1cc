"""The plain port.

original: relative_positions
family: plain port
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, d, heads, *, rngs):
        if d % heads:
            raise ValueError(f"{heads} heads do not divide {d}")
        self.heads, self.width = heads, d // heads
        self.query, self.key, self.value = (Linear(d, d, rngs=rngs) for _ in range(3))
        self.place = Linear(d, d, bias=False, rngs=rngs)
        self.bias = nnx.Param(jax.random.normal(rngs.params(), (heads, self.width)))

    def split(self, x):
        return x.reshape(x.shape[0], -1, self.heads, self.width).swapaxes(1, 2)

    def shift(self, scores):
        batch, heads, length, places = scores.shape
        padded = jnp.pad(scores, ((0, 0), (0, 0), (0, 0), (1, 0))).reshape(batch, heads, places + 1, length)
        return padded[:, :, 1:].reshape(scores.shape)[..., : places // 2 + 1]

    def __call__(self, x, distances):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        places = self.split(self.place(distances))
        content = q @ k.swapaxes(-1, -2)
        scores = content + self.shift((q + self.bias[...][:, None]) @ places.swapaxes(-1, -2))
        y = jax.nn.softmax(scores / self.width**0.5, axis=-1) @ v
        return y.swapaxes(1, 2).reshape(x.shape)
