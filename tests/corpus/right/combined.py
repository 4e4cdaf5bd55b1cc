"""What no example gives is refused, in the helper too.

original: combined
family: plain port
"""

from flax import nnx
from nnx_layers_jax import Linear


def combine(a, b, how):
    if how is None:
        return a + b
    if isinstance(how, dict):
        raise NotImplementedError("weights were not exercised: add an [[example]] with them")
    if callable(how):
        raise NotImplementedError("functions were not exercised: add an [[example]] with one")
    raise TypeError(f"cannot combine by {how}")


class M(nnx.Module):
    def __init__(self, how=None, *, rngs):
        self.how = how
        self.one = Linear(5, 5, rngs=rngs)
        self.two = Linear(5, 5, rngs=rngs)

    def __call__(self, x, *more, **named):
        y = combine(self.one(x), self.two(x), self.how)
        for other in more:
            raise NotImplementedError("further inputs were not exercised: add an [[example]] with one")
        for name, value in named.items():
            raise NotImplementedError("named inputs were not exercised: add an [[example]] with one")
        return y
