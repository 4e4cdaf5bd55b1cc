"""Discrete distributions with PyTorch's parameters, probabilities and samples (https://docs.pytorch.org/docs/stable/distributions.html)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

import jax
import jax.numpy as jnp
from flax import nnx
from jax.typing import ArrayLike

from migrate_agent.tools.vendored.distributions import Distribution, broadcast_all
from migrate_agent.tools.vendored.gamma import log_gamma
from migrate_agent.tools.vendored.losses import binary_cross_entropy_with_logits
from migrate_agent.tools.vendored.tensor_pointwise import clamp


def clamp_probs(probs: jax.Array) -> jax.Array:
    """Probabilities, kept off 0 and 1 by the least step of their dtype."""
    eps = float(jnp.finfo(probs.dtype).eps)
    return clamp(probs, eps, 1 - eps)


class FromProbsOrLogits(Distribution):
    """A distribution that is given as probabilities or as logits, of which it computes the others."""

    names = ("_param",)
    static = ("_is_logits",)

    def __init__(self, param: jax.Array, is_logits: bool) -> None:
        self._param, self._is_logits = param, is_logits

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of the parameters."""
        return tuple(self._param.shape)

    def expand(self, batch_shape: Sequence[int]) -> Self:
        """The distribution with its parameters broadcast."""
        param = jnp.broadcast_to(self._param, (*batch_shape, *self._param.shape[len(self.batch_shape) :]))
        return type(self)(logits=param) if self._is_logits else type(self)(probs=param)  # type: ignore[call-arg]


class Bernoulli(FromProbsOrLogits):
    """0 or 1. https://docs.pytorch.org/docs/stable/distributions.html#bernoulli"""

    has_enumerate_support = True

    def __init__(self, probs: ArrayLike | None = None, logits: ArrayLike | None = None, validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        super().__init__(broadcast_all(probs if logits is None else logits)[0], logits is not None)

    @property
    def probs(self) -> jax.Array:
        """The probability of 1."""
        return jax.nn.sigmoid(self._param) if self._is_logits else self._param

    @property
    def logits(self) -> jax.Array:
        """The logarithm of the odds of 1."""
        if self._is_logits:
            return self._param
        probs = clamp_probs(self._param)
        return jnp.log(probs) - jnp.log1p(-probs)

    @property
    def mean(self) -> jax.Array:
        """The mean."""
        return self.probs

    @property
    def mode(self) -> jax.Array:
        """The more probable value; NaN where both are alike."""
        return jnp.where(self.probs == 0.5, jnp.nan, (self.probs >= 0.5).astype(self._param.dtype))

    @property
    def variance(self) -> jax.Array:
        """The variance."""
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws, in the dtype of the parameters."""
        return jax.random.bernoulli(rngs(), self.probs, self.extended(sample_shape)).astype(self._param.dtype)

    def log_prob(self, value: jax.Array) -> jax.Array:
        """The logarithm of the probability."""
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> jax.Array:
        """The entropy."""
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> jax.Array:
        """All values, along a new first axis."""
        values = jnp.arange(2, dtype=self._param.dtype).reshape(-1, *(1 for _ in self.batch_shape))
        return jnp.broadcast_to(values, (2, *self.batch_shape)) if expand else values

    def kl(self, other: Bernoulli) -> jax.Array:
        """The divergence from another."""
        p, q = self.probs, other.probs
        ones = p * (jax.nn.softplus(-other.logits) - jax.nn.softplus(-self.logits))
        zeros = (1 - p) * (jax.nn.softplus(other.logits) - jax.nn.softplus(self.logits))
        ones = jnp.where(p == 0, 0, jnp.where(q == 0, jnp.inf, ones))
        return ones + jnp.where(p == 1, 0, jnp.where(q == 1, jnp.inf, zeros))


class Categorical(FromProbsOrLogits):
    """An index into the last axis of the parameters. https://docs.pytorch.org/docs/stable/distributions.html#categorical"""

    has_enumerate_support = True

    def __init__(self, probs: jax.Array | None = None, logits: jax.Array | None = None, validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        if probs is not None:
            super().__init__(probs / probs.sum(-1, keepdims=True), False)
        elif logits is not None:
            super().__init__(logits - jax.nn.logsumexp(logits, axis=-1, keepdims=True), True)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the parameters but the last axis."""
        return tuple(self._param.shape[:-1])

    @property
    def probs(self) -> jax.Array:
        """Probabilities that sum to 1."""
        return jax.nn.softmax(self._param, axis=-1) if self._is_logits else self._param

    @property
    def logits(self) -> jax.Array:
        """Logarithms of the probabilities."""
        return self._param if self._is_logits else jnp.log(clamp_probs(self._param))

    @property
    def mean(self) -> jax.Array:
        """Undefined: NaN."""
        return jnp.full(self.batch_shape, jnp.nan, self._param.dtype)

    @property
    def variance(self) -> jax.Array:
        """Undefined: NaN."""
        return jnp.full(self.batch_shape, jnp.nan, self._param.dtype)

    @property
    def mode(self) -> jax.Array:
        """The most probable index."""
        return jnp.argmax(self.probs, axis=-1)

    def sample(self, sample_shape: Sequence[int] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Indices."""
        rows = jnp.log(self.probs).reshape(-1, self._param.shape[-1])
        drawn = jax.random.categorical(rngs(), rows, shape=(math.prod(sample_shape), len(rows)))
        return drawn.reshape(*sample_shape, *self.batch_shape).astype(int)

    def log_prob(self, value: jax.Array) -> jax.Array:
        """The logarithm of the probability of an index."""
        shape = jnp.broadcast_shapes(value.shape, self.batch_shape)
        index = jnp.broadcast_to(value.astype(int), shape)[..., None]
        return jnp.take_along_axis(jnp.broadcast_to(self.logits, (*shape, self._param.shape[-1])), index, axis=-1)[..., 0]

    def entropy(self) -> jax.Array:
        """The entropy."""
        least = float(jnp.finfo(self._param.dtype).min)
        return -(clamp(self.logits, least) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> jax.Array:
        """All indices, along a new first axis."""
        values = jnp.arange(self._param.shape[-1]).reshape(-1, *(1 for _ in self.batch_shape))
        return jnp.broadcast_to(values, (len(values), *self.batch_shape)) if expand else values

    def kl(self, other: Categorical) -> jax.Array:
        """The divergence from another."""
        terms = self.probs * (self.logits - other.logits)
        terms = jnp.where(other.probs == 0, jnp.inf, terms)
        return jnp.where(self.probs == 0, 0, terms).sum(-1)


class OneHotCategorical(Categorical):
    """A one-hot vector. https://docs.pytorch.org/docs/stable/distributions.html#onehotcategorical"""

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of one draw."""
        return tuple(self._param.shape[-1:])

    @property
    def mean(self) -> jax.Array:
        """The mean."""
        return self.probs

    @property
    def mode(self) -> jax.Array:
        """The most probable vector."""
        return self.encode(super().mode)

    @property
    def variance(self) -> jax.Array:
        """The variance."""
        return self.probs * (1 - self.probs)

    def encode(self, index: jax.Array) -> jax.Array:
        """Indices as one-hot vectors in the dtype of the parameters."""
        return jax.nn.one_hot(index, self._param.shape[-1], dtype=self._param.dtype)

    def sample(self, sample_shape: Sequence[int] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """One-hot vectors."""
        return self.encode(super().sample(sample_shape, rngs=rngs))

    def log_prob(self, value: jax.Array) -> jax.Array:
        """The logarithm of the probability of a one-hot vector."""
        return super().log_prob(jnp.argmax(value, axis=-1))

    def enumerate_support(self, expand: bool = True) -> jax.Array:
        """All vectors, along a new first axis."""
        return self.encode(super().enumerate_support(expand))


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot vectors, whose gradient is taken to be that of the probabilities.

    https://docs.pytorch.org/docs/stable/generated/torch.distributions.one_hot_categorical.OneHotCategoricalStraightThrough.html
    """

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws that the probabilities get gradients through."""
        return self.sample(sample_shape, rngs=rngs) + (self.probs - jax.lax.stop_gradient(self.probs))


class Poisson(Distribution):
    """Counts at a constant rate. https://docs.pytorch.org/docs/stable/distributions.html#poisson"""

    names = ("rate",)

    def __init__(self, rate: ArrayLike, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)

    @property
    def mean(self) -> jax.Array:
        """The mean."""
        return self.rate

    @property
    def mode(self) -> jax.Array:
        """The most probable value."""
        return jnp.floor(self.rate)

    @property
    def variance(self) -> jax.Array:
        """The variance."""
        return self.rate

    def sample(self, sample_shape: Sequence[int] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws, in the dtype of the rate."""
        return jax.random.poisson(rngs(), self.rate, self.extended(sample_shape)).astype(self.rate.dtype)

    def log_prob(self, value: jax.Array) -> jax.Array:
        """The logarithm of the probability."""
        rate, value = broadcast_all(self.rate, value)
        return jax.scipy.special.xlogy(value, rate) - rate - log_gamma(value + 1)

    def kl(self, other: Poisson) -> jax.Array:
        """The divergence from another."""
        return self.rate * (jnp.log(self.rate) - jnp.log(other.rate)) - (self.rate - other.rate)
