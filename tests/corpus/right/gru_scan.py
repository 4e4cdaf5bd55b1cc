"""The steps run in a lax.scan.

original: gru
family: scanned
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
        n = jnp.tanh(nx + r * nh)
        return (1 - z) * n + z * h


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.cell = Cell(4, 4, rngs=rngs)

    def __call__(self, x, lengths):
        h = jnp.zeros((x.shape[0], 4), x.dtype)

        def step(h, item):
            t, row = item
            new = self.cell(row, h)
            alive = (t < lengths)[:, None]
            return jnp.where(alive, new, h), jnp.where(alive, new, 0.0)

        h, out = jax.lax.scan(step, h, (jnp.arange(x.shape[1]), x.swapaxes(0, 1)))
        return out.swapaxes(0, 1), h
