"""The helper is written out where it is called.

original: combined
family: fused
"""

from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, how=None, *, rngs):
        self.how = how
        self.one = Linear(5, 5, rngs=rngs)
        self.two = Linear(5, 5, rngs=rngs)

    def __call__(self, x, *more, **named):
        if isinstance(self.how, dict):
            raise NotImplementedError("weights were not exercised: add an [[example]] with them")
        if callable(self.how):
            raise NotImplementedError("functions were not exercised: add an [[example]] with one")
        if self.how is not None:
            raise TypeError(f"cannot combine by {self.how}")
        if more:
            raise NotImplementedError("further inputs were not exercised: add an [[example]] with one")
        if named:
            raise NotImplementedError("named inputs were not exercised: add an [[example]] with one")
        return self.one(x) + self.two(x)
