"""The backward pass draws the mask again, from the same key.

original: dropout
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Dropout1d, Linear


@jax.custom_vjp
def drop(key, h):
    return jnp.where(jax.random.bernoulli(key, 0.75, h.shape), h / 0.75, 0.0)


def forward(key, h):
    return drop(key, h), (key, h)


def backward(kept, g):
    key, h = kept
    return None, jnp.where(jax.random.bernoulli(key, 0.75, h.shape), g / 0.75, 0.0)


drop.defvjp(forward, backward)


@jax.custom_vjp
def leave_out(key, x, p):
    return x * (jax.random.uniform(key, (x.shape[0], 1, 1)) >= p) / (1 - p)


def forward_left_out(key, x, p):
    return leave_out(key, x, p), (key, x, p)


def backward_left_out(kept, g):
    key, x, p = kept
    return None, leave_out(key, g, p), None


leave_out.defvjp(forward_left_out, backward_left_out)


class DropPath(nnx.Module):
    def __init__(self, p, *, rngs):
        self.p = p
        self.rngs = rngs
        self.deterministic = False

    def __call__(self, x):
        if self.deterministic:
            return x
        return leave_out(self.rngs(), x, self.p)


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.fc = Linear(10, 10, rngs=rngs)
        self.channels = Dropout1d(0.5, rngs=rngs)
        self.path = DropPath(0.3, rngs=rngs)
        self.rngs = rngs
        self.deterministic = False

    def _drop(self, h):
        return h if self.deterministic else drop(self.rngs(), h)

    def __call__(self, x):
        h = self._drop(jnp.tanh(self.fc(x)))
        h = self.channels(h)
        if not self.deterministic:
            h = h + 0.05 * jax.random.normal(self.rngs(), h.shape)
        return x + self.path(h)
