"""The plain port, with stubs in the place of what no call of the unit reaches in its base.

original: inherited_arm
family: refused
"""

import jax.numpy as jnp
from flax import nnx


class Encoding(nnx.Module):
    def __init__(self, table, is_trained=False, *, rngs):
        if is_trained:
            raise NotImplementedError("this part of Encoding.__init__ was not exercised: add an [[example]] for which `is_trained` holds")
        else:
            self.table = nnx.Variable(table)

    def __call__(self, x):
        raise NotImplementedError("Encoding.__call__ was not exercised: add an [[example]] that calls it")


class M(Encoding):
    def __init__(self, width, *, rngs):
        super().__init__(jnp.eye(width) * 0.5, rngs=rngs)
        self.width = width

    def __call__(self, x):
        if x.shape[-1] != self.width:
            raise ValueError("another width")
        return jnp.cos(x @ self.table[...])
