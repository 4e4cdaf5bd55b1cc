"""Another error is raised, in each call in place of the constructor.

original: divided_heads
family: other but equal formulas
"""

import jax
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, d, heads, *, rngs):
        self.d, self.heads, self.width = d, heads, d // heads
        self.query, self.key, self.value = (Linear(d, d, rngs=rngs) for _ in range(3))
        self.out = Linear(d, d, rngs=rngs)

    def split(self, x):
        return x.reshape(x.shape[0], -1, self.heads, self.width).swapaxes(1, 2)

    def __call__(self, x):
        if self.heads * self.width != self.d:
            raise ValueError(f"a width of {self.d} is not {self.heads} heads")
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        shares = jax.nn.softmax(q @ k.swapaxes(-1, -2) / self.width**0.5, axis=-1)
        y = (shares @ v).swapaxes(1, 2).reshape(x.shape[0], -1, self.d)
        return self.out(y)
