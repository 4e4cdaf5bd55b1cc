"""The hidden bias of the new gate stands outside the reset gate.

original: gru
family: ignored parameter
place: cell
"""

import jax
import jax.numpy as jnp
from flax import nnx


class Cell(nnx.Module):
    def __init__(self, inputs, hidden, *, rngs):
        def draw(shape):
            return nnx.Param(jax.random.uniform(rngs.params(), shape, minval=-(hidden**-0.5), maxval=hidden**-0.5))

        self.weight_ih = draw((3 * hidden, inputs))
        self.weight_hh = draw((3 * hidden, hidden))
        self.bias_ih = draw((3 * hidden,))
        self.bias_hh = draw((3 * hidden,))

    def __call__(self, x, h):
        rx, zx, nx = jnp.split(x @ self.weight_ih[...].T + self.bias_ih[...], 3, axis=-1)
        rh, zh, nh = jnp.split(h @ self.weight_hh[...].T + self.bias_hh[...], 3, axis=-1)
        r, z = jax.nn.sigmoid(rx + rh), jax.nn.sigmoid(zx + zh)
        n = jnp.tanh(nx + r * (nh - self.bias_hh[...][8:]) + self.bias_hh[...][8:])
        return (1 - z) * n + z * h


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.cell = Cell(4, 4, rngs=rngs)

    def __call__(self, x, lengths):
        h = jnp.zeros((x.shape[0], 4), x.dtype)
        outputs = []
        for t in range(x.shape[1]):
            new = self.cell(x[:, t], h)
            alive = (t < lengths)[:, None]
            h = jnp.where(alive, new, h)
            outputs.append(jnp.where(alive, new, 0.0))
        return jnp.stack(outputs, 1), h
