"""Continuous distributions with PyTorch's parameters, densities and samples (https://docs.pytorch.org/docs/stable/distributions.html).

Arguments are not validated, as their values are not known while a function is traced.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
from jax.typing import ArrayLike

from migrate_agent.tools.vendored.numeric import absolute
from migrate_agent.tools.vendored.tensor_pointwise import clamp


def broadcast_all(*values: Any) -> list[jax.Array]:
    """Arrays of one shape; plain numbers get the dtype of the first array."""
    dtype = next((value.dtype for value in values if hasattr(value, "dtype")), float)
    return jnp.broadcast_arrays(*(value if hasattr(value, "dtype") else jnp.asarray(value, dtype) for value in values))


class Distribution:
    """What all have in common; `batch_shape` is that of independent distributions, `event_shape` that of one draw.

    A pytree of its arrays, so that functions which are traced may take and return it, and modules hold it.

    https://docs.pytorch.org/docs/stable/distributions.html#torch.distributions.distribution.Distribution
    """

    has_rsample: ClassVar[bool] = False
    has_enumerate_support: ClassVar[bool] = False
    names: ClassVar[tuple[str, ...]] = ()
    """The parameters, which have the shape of the batch."""
    static: ClassVar[tuple[str, ...]] = ()
    """Attributes that are no arrays."""

    def __init_subclass__(cls) -> None:
        jax.tree_util.register_pytree_node(cls, cls.tree_flatten, cls.tree_unflatten)
        nnx.register_data_type(cls)

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """The arrays, and the rest."""
        arrays = {name: value for name, value in self.__dict__.items() if name not in self.static}
        return tuple(arrays.values()), (tuple(arrays), tuple(getattr(self, name) for name in self.static))

    @classmethod
    def tree_unflatten(cls, rest: Any, arrays: Sequence[Any]) -> Self:
        """The distribution again."""
        made = object.__new__(cls)
        made.__dict__.update(zip(rest[0], arrays, strict=True))
        made.__dict__.update(zip(cls.static, rest[1], strict=True))
        return made

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the parameters."""
        return tuple(getattr(self, self.names[0]).shape)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of one draw."""
        return ()

    @property
    def variance(self) -> jax.Array:
        """The variance; defined by each kind."""
        raise NotImplementedError

    @property
    def stddev(self) -> jax.Array:
        """The standard deviation."""
        return jnp.sqrt(self.variance)

    def expand(self, batch_shape: Sequence[int]) -> Self:
        """The distribution with its parameters broadcast."""
        return type(self)(*(jnp.broadcast_to(getattr(self, name), tuple(batch_shape)) for name in self.names))

    def extended(self, sample_shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of what is drawn."""
        return (*sample_shape, *self.batch_shape, *self.event_shape)

    def rsample(self, sample_shape: Sequence[int] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws that the parameters get gradients through."""
        raise NotImplementedError

    def sample(self, sample_shape: Sequence[int] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws that carry no gradient."""
        return jax.lax.stop_gradient(self.rsample(sample_shape, rngs=rngs))

    def entropy(self) -> jax.Array:
        """The (differential) entropy of each distribution of the batch, in nats."""
        raise NotImplementedError

    def perplexity(self) -> jax.Array:
        """The exponential of the entropy."""
        return jnp.exp(self.entropy())

    def log_prob(self, value: jax.Array) -> jax.Array:
        """The logarithm of the density (or probability) at `value`."""
        raise NotImplementedError

    def kl(self, other: Any) -> jax.Array:
        """The Kullback-Leibler divergence from another of the same kind."""
        raise NotImplementedError


def kl_divergence(p: Distribution, q: Distribution) -> jax.Array:
    """KL(p ‖ q) of two distributions of one kind.

    https://docs.pytorch.org/docs/stable/distributions.html#torch.distributions.kl.kl_divergence
    """
    if not isinstance(q, type(p)) and not isinstance(p, type(q)):
        raise NotImplementedError(f"the divergence of {type(p).__name__} from {type(q).__name__}")
    return p.kl(q)


class LocationScale(Distribution):
    """A fixed distribution, stretched by `scale` and moved by `loc`."""

    has_rsample = True
    names = ("loc", "scale")

    def __init__(self, loc: ArrayLike, scale: ArrayLike, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)

    @property
    def mean(self) -> jax.Array:
        """The mean."""
        return self.loc

    @property
    def mode(self) -> jax.Array:
        """The most probable value."""
        return self.loc

    def draw(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        """Draws with location 0 and scale 1."""
        raise NotImplementedError

    def rsample(self, sample_shape: Sequence[int] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws that the parameters get gradients through."""
        return self.loc + self.scale * self.draw(rngs(), self.extended(sample_shape))


class Normal(LocationScale):
    """Gaussian. https://docs.pytorch.org/docs/stable/distributions.html#normal"""

    @property
    def stddev(self) -> jax.Array:
        """The standard deviation."""
        return self.scale

    @property
    def variance(self) -> jax.Array:
        """The variance."""
        return self.scale**2

    def draw(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        """Standard normal numbers."""
        return jax.random.normal(key, shape, self.loc.dtype)

    def log_prob(self, value: jax.Array) -> jax.Array:
        """The logarithm of the density."""
        return -((value - self.loc) ** 2) / (2 * self.variance) - jnp.log(self.scale) - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: jax.Array) -> jax.Array:
        """The probability of at most `value`."""
        return 0.5 * (1 + jax.lax.erf((value - self.loc) / self.scale / math.sqrt(2)))

    def icdf(self, value: jax.Array) -> jax.Array:
        """The value below which this probability lies."""
        return self.loc + self.scale * jax.lax.erf_inv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> jax.Array:
        """The differential entropy."""
        return 0.5 + 0.5 * math.log(2 * math.pi) + jnp.log(self.scale)

    def kl(self, other: Normal) -> jax.Array:
        """The divergence from another."""
        ratio = lax.optimization_barrier((self.scale / other.scale) ** 2)  # else XLA takes the logarithm of an exponential that overflows
        return 0.5 * (ratio + ((self.loc - other.loc) / other.scale) ** 2 - 1 - jnp.log(ratio))


class LogNormal(Normal):
    """The exponential of a Gaussian. https://docs.pytorch.org/docs/stable/distributions.html#lognormal"""

    @property
    def mean(self) -> jax.Array:
        """The mean."""
        return jnp.exp(self.loc + self.scale**2 / 2)

    @property
    def mode(self) -> jax.Array:
        """The most probable value."""
        return jnp.exp(self.loc - self.scale**2)

    @property
    def variance(self) -> jax.Array:
        """The variance."""
        return jnp.expm1(self.scale**2) * jnp.exp(2 * self.loc + self.scale**2)

    @property
    def stddev(self) -> jax.Array:
        """The standard deviation."""
        return jnp.sqrt(self.variance)

    def rsample(self, sample_shape: Sequence[int] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws that the parameters get gradients through."""
        return jnp.exp(super().rsample(sample_shape, rngs=rngs))

    def log_prob(self, value: jax.Array) -> jax.Array:
        """The logarithm of the density."""
        return Normal(self.loc, self.scale).log_prob(jnp.log(value)) - jnp.log(value)

    def cdf(self, value: jax.Array) -> jax.Array:
        """The probability of at most `value`."""
        return super().cdf(jnp.log(value))

    def icdf(self, value: jax.Array) -> jax.Array:
        """The value below which this probability lies."""
        return jnp.exp(super().icdf(value))

    def entropy(self) -> jax.Array:
        """The differential entropy."""
        return super().entropy() + self.loc


class Laplace(LocationScale):
    """Two exponentials back to back. https://docs.pytorch.org/docs/stable/distributions.html#laplace"""

    @property
    def stddev(self) -> jax.Array:
        """The standard deviation."""
        return 2**0.5 * self.scale

    @property
    def variance(self) -> jax.Array:
        """The variance."""
        return 2 * self.scale**2

    def draw(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        """Draws with location 0 and scale 1."""
        return jax.random.laplace(key, shape, self.loc.dtype)

    def log_prob(self, value: jax.Array) -> jax.Array:
        """The logarithm of the density."""
        return -jnp.log(2 * self.scale) - absolute(value - self.loc) / self.scale

    def entropy(self) -> jax.Array:
        """The differential entropy."""
        return 1 + jnp.log(2 * self.scale)

    def kl(self, other: Laplace) -> jax.Array:
        """The divergence from another."""
        ratio, distance = self.scale / other.scale, absolute(self.loc - other.loc)
        return -jnp.log(ratio) + distance / other.scale + ratio * jnp.exp(-distance / self.scale) - 1


class Gumbel(LocationScale):
    """The largest of many. https://docs.pytorch.org/docs/stable/distributions.html#gumbel"""

    @property
    def mean(self) -> jax.Array:
        """The mean."""
        return self.loc + self.scale * float(np.euler_gamma)

    @property
    def stddev(self) -> jax.Array:
        """The standard deviation."""
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> jax.Array:
        """The variance."""
        return self.stddev**2

    def draw(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        """Draws with location 0 and scale 1."""
        return jax.random.gumbel(key, shape, self.loc.dtype)

    def log_prob(self, value: jax.Array) -> jax.Array:
        """The logarithm of the density."""
        y = (self.loc - value) / self.scale
        return y - jnp.exp(y) - jnp.log(self.scale)

    def entropy(self) -> jax.Array:
        """The differential entropy."""
        return jnp.log(self.scale) + 1 + float(np.euler_gamma)


class Uniform(Distribution):
    """All values from `low` to `high` alike. https://docs.pytorch.org/docs/stable/distributions.html#uniform"""

    has_rsample = True
    names = ("low", "high")

    def __init__(self, low: ArrayLike, high: ArrayLike, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)

    @property
    def mean(self) -> jax.Array:
        """The mean."""
        return (self.high + self.low) / 2

    @property
    def stddev(self) -> jax.Array:
        """The standard deviation."""
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self) -> jax.Array:
        """The variance."""
        return (self.high - self.low) ** 2 / 12

    def rsample(self, sample_shape: Sequence[int] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws that the parameters get gradients through."""
        return self.low + jax.random.uniform(rngs(), self.extended(sample_shape), self.low.dtype) * (self.high - self.low)

    def log_prob(self, value: jax.Array) -> jax.Array:
        """The logarithm of the density: that of 0 outside."""
        inside = (self.low <= value) & (value < self.high)
        return jnp.log(inside.astype(self.low.dtype)) - jnp.log(self.high - self.low)

    def cdf(self, value: jax.Array) -> jax.Array:
        """The probability of at most `value`."""
        return clamp((value - self.low) / (self.high - self.low), 0, 1)

    def icdf(self, value: jax.Array) -> jax.Array:
        """The value below which this probability lies."""
        return value * (self.high - self.low) + self.low

    def entropy(self) -> jax.Array:
        """The differential entropy."""
        return jnp.log(self.high - self.low)

    def kl(self, other: Uniform) -> jax.Array:
        """The divergence from another: infinite where that does not cover this."""
        result = jnp.log((other.high - other.low) / (self.high - self.low))
        return jnp.where((other.low > self.low) | (other.high < self.high), jnp.inf, result)


class Exponential(Distribution):
    """Waiting times at a constant rate. https://docs.pytorch.org/docs/stable/distributions.html#exponential"""

    has_rsample = True
    names = ("rate",)

    def __init__(self, rate: ArrayLike, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)

    @property
    def mean(self) -> jax.Array:
        """The mean."""
        return 1 / self.rate

    @property
    def mode(self) -> jax.Array:
        """The most probable value."""
        return jnp.zeros_like(self.rate)

    @property
    def stddev(self) -> jax.Array:
        """The standard deviation."""
        return 1 / self.rate

    @property
    def variance(self) -> jax.Array:
        """The variance."""
        return self.rate**-2

    def rsample(self, sample_shape: Sequence[int] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws that the parameters get gradients through."""
        return jax.random.exponential(rngs(), self.extended(sample_shape), self.rate.dtype) / self.rate

    def log_prob(self, value: jax.Array) -> jax.Array:
        """The logarithm of the density."""
        return jnp.log(self.rate) - self.rate * value

    def cdf(self, value: jax.Array) -> jax.Array:
        """The probability of at most `value`."""
        return 1 - jnp.exp(-self.rate * value)

    def entropy(self) -> jax.Array:
        """The differential entropy."""
        return 1 - jnp.log(self.rate)

    def kl(self, other: Exponential) -> jax.Array:
        """The divergence from another."""
        ratio = other.rate / self.rate
        return -jnp.log(ratio) + ratio - 1
