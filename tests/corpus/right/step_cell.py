"""The plain port.

original: step_cell
family: plain port
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, width, hidden, leak=0.9, *, rngs):
        self.hidden = hidden
        self.leak = leak
        self.inner = Linear(width, 2 * hidden, rngs=rngs)
        self.again = Linear(hidden, 2 * hidden, bias=False, rngs=rngs)

    def __call__(self, x, state=None, mask=None):
        if state is None:
            state = jnp.zeros((x.shape[0], self.hidden), x.dtype)
        outputs = []
        for t in range(x.shape[1]):
            value, gate = jnp.split(self.inner(x[:, t]) + self.again(state), 2, axis=-1)
            gate = jax.nn.sigmoid(gate.astype(jnp.float32)).astype(x.dtype)
            new = self.leak * gate * state + (1 - gate) * jnp.tanh(value)
            if mask is not None:
                new = jnp.where(mask[:, t, None].astype(bool), new, state)
            state = new
            outputs.append(state)
        return jnp.stack(outputs, axis=1), state
