"""A module of Equinox, which is mapped over the batch by its caller's file.

original: step_cell
family: other library
port: kind = "equinox"
port: init = "4, 6"
"""

import equinox as eqx
import jax
import jax.numpy as jnp


class M(eqx.Module):
    inner: eqx.nn.Linear
    again: eqx.nn.Linear
    hidden: int = eqx.field(static=True)
    leak: float = eqx.field(static=True)

    def __init__(self, width, hidden, leak=0.9, *, key):
        first, second = jax.random.split(key)
        self.again = eqx.nn.Linear(hidden, 2 * hidden, use_bias=False, key=first)
        self.inner = eqx.nn.Linear(width, 2 * hidden, key=second)
        self.hidden, self.leak = hidden, leak

    def __call__(self, x, state=None, mask=None):
        if state is None:
            state = jnp.zeros((x.shape[0], self.hidden), x.dtype)
        outputs = []
        for t in range(x.shape[1]):
            pushed = x[:, t] @ self.inner.weight.T + self.inner.bias + state @ self.again.weight.T
            value, gate = pushed[:, : self.hidden], pushed[:, self.hidden :]
            gate = jax.nn.sigmoid(gate.astype(jnp.float32)).astype(x.dtype)
            new = self.leak * gate * state + (1 - gate) * jnp.tanh(value)
            state = new if mask is None else jnp.where(mask[:, t, None] != 0, new, state)
            outputs.append(state)
        return jnp.stack(outputs, 1), state
