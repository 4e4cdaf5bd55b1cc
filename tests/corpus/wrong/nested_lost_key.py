"""One entry of the output is missing.

original: nested
family: dropped terms
"""

from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.fc = Linear(4, 4, rngs=rngs)

    def __call__(self, batch):
        first, second = batch["parts"]
        return {"total": self.fc(first) + second, "scaled": [first * batch["scale"], second]}
