"""Each sequence is turned round by its length, and masks stand for the packing.

original: packed
family: plain port
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class Both(nnx.Module):
    def __init__(self, inputs, hidden, *, rngs):
        def draw(shape):
            return nnx.Param(jax.random.uniform(rngs.params(), shape, minval=-(hidden**-0.5), maxval=hidden**-0.5))

        for end in ("l0", "l0_reverse"):
            for kind, width in (("ih", inputs), ("hh", hidden)):
                setattr(self, f"weight_{kind}_{end}", draw((3 * hidden, width)))
                setattr(self, f"bias_{kind}_{end}", draw((3 * hidden,)))

    def one_way(self, x, alive, end):
        weights = [getattr(self, f"{name}_{end}")[...] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]

        def step(h, item):
            row, runs = item
            rx, zx, nx = jnp.split(row @ weights[0].T + weights[2], 3, axis=-1)
            rh, zh, nh = jnp.split(h @ weights[1].T + weights[3], 3, axis=-1)
            r, z = jax.nn.sigmoid(rx + rh), jax.nn.sigmoid(zx + zh)
            new = (1 - z) * jnp.tanh(nx + r * nh) + z * h
            return jnp.where(runs, new, h), jnp.where(runs, new, 0.0)

        start = jnp.zeros((x.shape[0], weights[1].shape[1]), x.dtype)
        h, out = jax.lax.scan(step, start, (x.swapaxes(0, 1), alive.T[..., None]))
        return out.swapaxes(0, 1), h

    def __call__(self, x, lengths):
        steps = jnp.arange(x.shape[1])
        alive = steps < lengths[:, None]
        turned = jnp.where(alive, lengths[:, None] - 1 - steps, steps)
        there, last = self.one_way(x, alive, "l0")
        back, first = self.one_way(jnp.take_along_axis(x, turned[..., None], axis=1), alive, "l0_reverse")
        back = jnp.take_along_axis(back, turned[..., None], axis=1)
        return jnp.concatenate([there, back], -1), jnp.stack([last, first])


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.rnn = Both(4, 3, rngs=rngs)
        self.score = Linear(6, 1, rngs=rngs)

    def __call__(self, x, lengths):
        out, h = self.rnn(x, lengths)
        padding = jnp.arange(out.shape[1]) >= lengths[:, None]
        weights = jax.nn.softmax(jnp.where(padding, -1e9, self.score(out)[..., 0]), axis=1)
        return (weights[..., None] * out).sum(1), out, h
