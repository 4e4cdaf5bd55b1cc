"""Puts its result into the caller's dictionary.

original: nested
family: mutating inputs
"""

from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.fc = Linear(4, 4, rngs=rngs)

    def __call__(self, batch):
        first, second = batch["parts"]
        batch["scale"] = 1.0
        batch["parts"][0] = second
        return {"sum": self.fc(first) + second, "scaled": [first * batch["scale"], second]}
