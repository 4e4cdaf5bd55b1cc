"""The parts are exchanged.

original: nested
family: swapped arguments
place: .
"""

from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.fc = Linear(4, 4, rngs=rngs)

    def __call__(self, batch):
        second, first = batch["parts"]
        return {"sum": self.fc(first) + second, "scaled": [first * batch["scale"], second]}
