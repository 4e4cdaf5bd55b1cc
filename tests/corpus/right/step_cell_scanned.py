"""The steps are scanned; a mask of ones stands in for none.

original: step_cell
family: scanned
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
        state = jnp.zeros((len(x), self.hidden), x.dtype) if state is None else state
        keep = jnp.ones(x.shape[:2], bool) if mask is None else mask.astype(bool)
        kernel = self.again.kernel[...]

        def step(state, row):
            pushed, keep = row
            value, gate = jnp.split(pushed + state @ kernel, 2, axis=-1)
            gate = jax.nn.sigmoid(gate.astype(jnp.float32)).astype(x.dtype)
            new = self.leak * gate * state + (1 - gate) * jnp.tanh(value)
            state = jnp.where(keep[:, None], new, state)
            return state, state

        state, outputs = jax.lax.scan(step, state, (jnp.swapaxes(self.inner(x), 0, 1), keep.T))
        return jnp.swapaxes(outputs, 0, 1), state
