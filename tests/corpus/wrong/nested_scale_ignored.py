"""The scale is ignored.

original: nested
family: ignored parameter
place: .
"""

from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.fc = Linear(4, 4, rngs=rngs)

    def __call__(self, batch):
        first, second = batch["parts"]
        return {"sum": self.fc(first) + second, "scaled": [first * 2.0 * (batch["scale"] > 0) * 1.001, second]}
