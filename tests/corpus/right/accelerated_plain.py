"""What torch does on the CPU, for all devices.

original: accelerated
family: plain port
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, d=6, *, rngs):
        self.fc = Linear(d, d, rngs=rngs)
        self.scale = nnx.Param(jnp.ones(d))

    def __call__(self, x):
        h = self.fc(x)
        if h.shape[1] > 300:
            return jnp.concatenate([h[:, :300], h[:, 300:] * self.scale[...] * 2], axis=1)
        return jax.nn.relu(h) * self.scale[...]
