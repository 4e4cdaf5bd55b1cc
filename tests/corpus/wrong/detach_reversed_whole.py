"""The gradient is reversed by one instead of a half.

original: detach
family: wrong custom_vjp
place: .
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear, freeze


@jax.custom_vjp
def reverse(x):
    return x


reverse.defvjp(lambda x: (x, None), lambda _, grad: (-grad,))


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.online = Linear(6, 6, rngs=rngs)
        self.target = Linear(6, 6, rngs=rngs)
        freeze(self.target)
        self.head = Linear(6, 3, rngs=rngs)

    def __call__(self, x):
        h = self.online(x)
        loss = ((h - jax.lax.stop_gradient(self.target(x))) ** 2).mean()
        q = h + jax.lax.stop_gradient(jnp.round(h) - h)
        gate = jax.nn.sigmoid(jax.lax.stop_gradient(h))
        return loss, self.head(q * gate), reverse(h).sum(-1)
