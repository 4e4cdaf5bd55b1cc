"""Each option as in torch.

original: many_options
family: plain port
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.fc = Linear(6, 6, rngs=rngs)
        self.deterministic = False

    def __call__(self, x, scale=None, shift=None, mask=None, context=None, noise=None):
        y = jnp.tanh(self.fc(x))
        if scale is not None:
            y = y * scale
        if shift is not None:
            y = y + shift
        if mask is not None:
            y = y * mask[:, None]
        if context is not None:
            y = y * jax.nn.sigmoid(context)
        if noise is not None and not self.deterministic:
            y = y + 0.1 * jax.lax.stop_gradient(noise)
        return y
