"""The function with a key of the module's own, in both modes.

original: always_dropout
family: plain port
"""

from flax import nnx
from nnx_layers_jax import Linear, alpha_dropout


class M(nnx.Module):
    def __init__(self, width, p=0.3, *, rngs):
        self.rngs = rngs
        self.p = p
        self.fc = Linear(width, width, rngs=rngs)

    def __call__(self, x):
        return alpha_dropout(self.fc(x), self.p, training=True, rngs=self.rngs)
