"""The output gate is applied to the cell without tanh.

original: lstm
family: swapped parts
place: rnn
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class LSTM(nnx.Module):
    def __init__(self, inputs, hidden, *, rngs):
        def draw(shape):
            return nnx.Param(jax.random.uniform(rngs.params(), shape, minval=-(hidden**-0.5), maxval=hidden**-0.5))

        self.weight_ih_l0 = draw((4 * hidden, inputs))
        self.weight_hh_l0 = draw((4 * hidden, hidden))
        self.bias_ih_l0 = draw((4 * hidden,))
        self.bias_hh_l0 = draw((4 * hidden,))

    def __call__(self, x):
        hidden = self.weight_hh_l0.shape[1]
        start = jnp.zeros((x.shape[0], hidden), x.dtype)

        def step(carry, row):
            h, c = carry
            gates = row @ self.weight_ih_l0[...].T + self.bias_ih_l0[...] + h @ self.weight_hh_l0[...].T + self.bias_hh_l0[...]
            i, f, g, o = jnp.split(gates, 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * c
            return (h, c), h

        (h, c), out = jax.lax.scan(step, (start, start), x.swapaxes(0, 1))
        return out.swapaxes(0, 1), (h[None], c[None])


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.rnn = LSTM(4, 4, rngs=rngs)
        self.head = Linear(4, 2, rngs=rngs)

    def __call__(self, x):
        out, (h, c) = self.rnn(x)
        return self.head(out), h, c
