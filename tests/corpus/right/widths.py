"""Ranks and settings that no example has are refused.

original: widths
family: plain port
"""

import jax
from flax import nnx
from nnx_layers_jax import Linear


def width_of(settings):
    try:
        width = settings.width
    except AttributeError:
        return 6
    raise NotImplementedError(f"a width of {width} was not exercised: add an [[example]] with it")


class M(nnx.Module):
    def __init__(self, settings=None, *, rngs):
        self.width = width_of(settings)
        self.lin = Linear(6, self.width, rngs=rngs)

    def __call__(self, x):
        y = self.lin(x)
        match x.ndim:
            case 2:
                y = jax.nn.relu(y)
            case 5:
                raise NotImplementedError("rank 5 was not exercised: add an [[example]] of it")
            case _:
                y = y.reshape(y.shape[0], -1)
        return y
