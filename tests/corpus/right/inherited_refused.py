"""The plain port, with stubs in the place of what no call reaches, the base classes' too.

original: inherited
family: refused
"""

import jax
import jax.numpy as jnp
from flax import nnx


class Base(nnx.Module):
    def __init__(self, gain):
        self.gain = gain

    def describe(self, x):
        raise NotImplementedError("Base.describe was not exercised: add an [[example]] that calls describe")

    def _outer(self, x):
        raise NotImplementedError("Base._outer was not exercised: add an [[example]] that calls _outer")


class Noisy(Base):
    def __init__(self, width, out, gain, *, rngs):
        super().__init__(gain)
        self.weight = nnx.Param(jax.random.normal(rngs.params(), (out, width)) / width)
        self.level = nnx.Param(jnp.full((out,), -2.0))
        self.offset = nnx.Variable(jnp.zeros(out))

    def _hold(self, offset):
        raise NotImplementedError("Noisy._hold was not exercised: add an [[example]] that calls _hold")

    def describe(self, x):
        raise NotImplementedError("Noisy.describe was not exercised: add an [[example]] that calls describe")


class M(Noisy):
    def __init__(self, width, out, gain=0.5, *, rngs):
        super().__init__(width, out, gain, rngs=rngs)
        self.bias = nnx.Param(jnp.zeros(out))

    def describe(self, x):
        return x.std(ddof=1) * self.gain

    def __call__(self, x):
        x = x @ self.weight[...].T + self.offset[...]
        return jnp.tanh(x * self.gain) + self.bias[...] + self.describe(x)
