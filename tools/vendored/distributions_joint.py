"""Distributions of vectors, and those made of gamma variates, as PyTorch has them (https://docs.pytorch.org/docs/stable/distributions.html)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax.typing import ArrayLike

from migrate_agent.tools.vendored.distributions import Distribution, broadcast_all, kl_divergence
from migrate_agent.tools.vendored.gamma import digamma, log_gamma
from migrate_agent.tools.vendored.tensor_pointwise import clamp


def sum_last(x: jax.Array, count: int) -> jax.Array:
    """The sum over the last `count` axes."""
    return x.sum(tuple(range(x.ndim - count, x.ndim))) if count else x


def diagonal_matrix(x: jax.Array) -> jax.Array:
    """Matrices (…, n, n) with the diagonal `x` (…, n)."""
    return x[..., None] * jnp.eye(x.shape[-1], dtype=x.dtype)


class Independent(Distribution):
    """The last axes of a batch taken together as one draw. https://docs.pytorch.org/docs/stable/distributions.html#independent"""

    static = ("reinterpreted_batch_ndims",)

    def __init__(self, base_distribution: Any, reinterpreted_batch_ndims: int, validate_args: bool | None = None) -> None:
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims

    @property
    def has_rsample(self) -> bool:
        """Whether gradients pass through draws."""
        return bool(self.base_dist.has_rsample)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the batch that is left."""
        shape = tuple(self.base_dist.batch_shape)
        return shape[: len(shape) - self.reinterpreted_batch_ndims]

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of one draw."""
        return (*self.base_dist.batch_shape, *self.base_dist.event_shape)[len(self.batch_shape) :]

    @property
    def mean(self) -> jax.Array:
        """The mean."""
        return self.base_dist.mean

    @property
    def mode(self) -> jax.Array:
        """The most probable value."""
        return self.base_dist.mode

    @property
    def variance(self) -> jax.Array:
        """The variance."""
        return self.base_dist.variance

    def expand(self, batch_shape: Sequence[int]) -> Independent:
        """The distribution with its parameters broadcast."""
        shape = (*batch_shape, *self.event_shape[: self.reinterpreted_batch_ndims])
        return Independent(self.base_dist.expand(shape), self.reinterpreted_batch_ndims)

    def sample(self, sample_shape: Sequence[int] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws that carry no gradient."""
        return self.base_dist.sample(sample_shape, rngs=rngs)

    def rsample(self, sample_shape: Sequence[int] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws that the parameters get gradients through."""
        return self.base_dist.rsample(sample_shape, rngs=rngs)

    def log_prob(self, value: jax.Array) -> jax.Array:
        """The logarithm of the density."""
        return sum_last(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> jax.Array:
        """The entropy."""
        return sum_last(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def kl(self, other: Independent) -> jax.Array:
        """The divergence from another."""
        if self.reinterpreted_batch_ndims != other.reinterpreted_batch_ndims:
            raise NotImplementedError("the divergence of distributions with different reinterpreted_batch_ndims")
        return sum_last(kl_divergence(self.base_dist, other.base_dist), self.reinterpreted_batch_ndims)


class MultivariateNormal(Distribution):
    """Gaussian vectors, held by the lower Cholesky factor of their covariance.

    https://docs.pytorch.org/docs/stable/distributions.html#multivariatenormal
    """

    has_rsample = True

    def __init__(
        self,
        loc: jax.Array,
        covariance_matrix: jax.Array | None = None,
        precision_matrix: jax.Array | None = None,
        scale_tril: jax.Array | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if scale_tril is None and covariance_matrix is not None:
            scale_tril = jnp.linalg.cholesky(covariance_matrix)
        elif scale_tril is None and precision_matrix is not None:
            flipped = jnp.linalg.cholesky(precision_matrix[..., ::-1, ::-1])[..., ::-1, ::-1].mT
            identity = jnp.broadcast_to(jnp.eye(flipped.shape[-1], dtype=flipped.dtype), flipped.shape)
            scale_tril = jax.scipy.linalg.solve_triangular(flipped, identity, lower=True)
        if scale_tril is None:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        batch = jnp.broadcast_shapes(scale_tril.shape[:-2], loc.shape[:-1])
        self.loc = jnp.broadcast_to(loc, (*batch, loc.shape[-1]))
        self.scale_tril = jnp.broadcast_to(scale_tril, (*batch, *scale_tril.shape[-2:]))

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the parameters but the axis of the vectors."""
        return tuple(self.loc.shape[:-1])

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of one draw."""
        return tuple(self.loc.shape[-1:])

    @property
    def covariance_matrix(self) -> jax.Array:
        """The covariance."""
        return self.scale_tril @ self.scale_tril.mT

    @property
    def precision_matrix(self) -> jax.Array:
        """The inverse of the covariance."""
        return jnp.linalg.inv(self.covariance_matrix)

    @property
    def mean(self) -> jax.Array:
        """The mean."""
        return self.loc

    @property
    def mode(self) -> jax.Array:
        """The most probable value."""
        return self.loc

    @property
    def variance(self) -> jax.Array:
        """The variance of each component."""
        return (self.scale_tril**2).sum(-1)

    def expand(self, batch_shape: Sequence[int]) -> MultivariateNormal:
        """The distribution with its parameters broadcast."""
        size = self.loc.shape[-1]
        loc, factor = jnp.broadcast_to(self.loc, (*batch_shape, size)), jnp.broadcast_to(self.scale_tril, (*batch_shape, size, size))
        return MultivariateNormal(loc, scale_tril=factor)

    def rsample(self, sample_shape: Sequence[int] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws that the parameters get gradients through."""
        noise = jax.random.normal(rngs(), self.extended(sample_shape), self.loc.dtype)
        return self.loc + (self.scale_tril @ noise[..., None])[..., 0]

    def half_log_det(self) -> jax.Array:
        """Half of the logarithm of the covariance's determinant."""
        return jnp.log(jnp.diagonal(self.scale_tril, axis1=-2, axis2=-1)).sum(-1)

    def whiten(self, vectors: jax.Array) -> jax.Array:
        """`scale_tril⁻¹ @ vectors` for vectors (…, n, k)."""
        factor = jnp.broadcast_to(self.scale_tril, (*vectors.shape[:-2], *self.scale_tril.shape[-2:]))
        return jax.scipy.linalg.solve_triangular(factor, vectors, lower=True)

    def log_prob(self, value: jax.Array) -> jax.Array:
        """The logarithm of the density."""
        distance = (self.whiten((value - self.loc)[..., None]) ** 2).sum((-2, -1))
        return -0.5 * (self.loc.shape[-1] * math.log(2 * math.pi) + distance) - self.half_log_det()

    def entropy(self) -> jax.Array:
        """The differential entropy."""
        return 0.5 * self.loc.shape[-1] * (1 + math.log(2 * math.pi)) + self.half_log_det()

    def kl(self, other: MultivariateNormal) -> jax.Array:
        """The divergence from another."""
        both = jnp.broadcast_shapes(self.batch_shape, other.batch_shape)
        factor = jnp.broadcast_to(self.scale_tril, (*both, *self.scale_tril.shape[-2:]))
        trace = (other.whiten(factor) ** 2).sum((-2, -1))
        distance = (other.whiten((other.loc - self.loc)[..., None]) ** 2).sum((-2, -1))
        return other.half_log_det() - self.half_log_det() + 0.5 * (trace + distance - self.loc.shape[-1])


class LowRankMultivariateNormal(Distribution):
    """Gaussian vectors whose covariance is `cov_factor @ cov_factor.T + diag(cov_diag)`, with a factor of few columns.

    https://docs.pytorch.org/docs/stable/distributions.html#lowrankmultivariatenormal
    """

    has_rsample = True

    def __init__(self, loc: jax.Array, cov_factor: jax.Array, cov_diag: jax.Array, validate_args: bool | None = None) -> None:
        batch = jnp.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc, self.cov_diag = (jnp.broadcast_to(one, (*batch, one.shape[-1])) for one in (loc, cov_diag))
        self.cov_factor = jnp.broadcast_to(cov_factor, (*batch, *cov_factor.shape[-2:]))

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the parameters but the axis of the vectors."""
        return tuple(self.loc.shape[:-1])

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of one draw."""
        return tuple(self.loc.shape[-1:])

    @property
    def mean(self) -> jax.Array:
        """The mean."""
        return self.loc

    @property
    def mode(self) -> jax.Array:
        """The most probable value."""
        return self.loc

    @property
    def variance(self) -> jax.Array:
        """The variance of each component."""
        return (self.cov_factor**2).sum(-1) + self.cov_diag

    @property
    def covariance_matrix(self) -> jax.Array:
        """The covariance."""
        return self.cov_factor @ self.cov_factor.mT + diagonal_matrix(self.cov_diag)

    @property
    def scale_tril(self) -> jax.Array:
        """The lower Cholesky factor of the covariance."""
        root = jnp.sqrt(self.cov_diag)[..., None]
        scaled = self.cov_factor / root
        factor: jax.Array = root * jnp.linalg.cholesky(scaled @ scaled.mT + jnp.eye(scaled.shape[-2], dtype=scaled.dtype))
        return factor

    @property
    def precision_matrix(self) -> jax.Array:
        """The inverse of the covariance."""
        whitened = self.whiten(diagonal_matrix(jnp.ones_like(self.cov_diag)))
        return diagonal_matrix(1 / self.cov_diag) - whitened.mT @ whitened

    def expand(self, batch_shape: Sequence[int]) -> LowRankMultivariateNormal:
        """The distribution with its parameters broadcast."""
        loc, diagonal = (jnp.broadcast_to(one, (*batch_shape, one.shape[-1])) for one in (self.loc, self.cov_diag))
        return LowRankMultivariateNormal(loc, jnp.broadcast_to(self.cov_factor, (*batch_shape, *self.cov_factor.shape[-2:])), diagonal)

    def rsample(self, sample_shape: Sequence[int] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws that the parameters get gradients through."""
        shape = self.extended(sample_shape)
        of_factor = jax.random.normal(rngs(), (*shape[:-1], self.cov_factor.shape[-1]), self.loc.dtype)
        of_diagonal = jax.random.normal(rngs(), shape, self.loc.dtype)
        return self.loc + (self.cov_factor @ of_factor[..., None])[..., 0] + jnp.sqrt(self.cov_diag) * of_diagonal

    def capacitance(self) -> jax.Array:
        """The lower Cholesky factor of `I + Wᵀ D⁻¹ W`, of the size of the rank."""
        product = (self.cov_factor.mT / self.cov_diag[..., None, :]) @ self.cov_factor
        return jnp.linalg.cholesky(product + jnp.eye(product.shape[-1], dtype=product.dtype))

    def whiten(self, vectors: jax.Array) -> jax.Array:
        """`C⁻¹ Wᵀ D⁻¹ @ vectors` for vectors (…, n, k), with the capacitance's factor `C`."""
        projected = (self.cov_factor.mT / self.cov_diag[..., None, :]) @ vectors
        factor = self.capacitance()
        return jax.scipy.linalg.solve_triangular(
            jnp.broadcast_to(factor, (*projected.shape[:-2], *factor.shape[-2:])), projected, lower=True
        )

    def log_det(self) -> jax.Array:
        """The logarithm of the covariance's determinant."""
        return 2 * jnp.log(jnp.diagonal(self.capacitance(), axis1=-2, axis2=-1)).sum(-1) + jnp.log(self.cov_diag).sum(-1)

    def distance(self, difference: jax.Array) -> jax.Array:
        """The squared Mahalanobis length of a vector."""
        return (difference**2 / self.cov_diag).sum(-1) - (self.whiten(difference[..., None]) ** 2).sum((-2, -1))

    def log_prob(self, value: jax.Array) -> jax.Array:
        """The logarithm of the density."""
        return -0.5 * (self.loc.shape[-1] * math.log(2 * math.pi) + self.log_det() + self.distance(value - self.loc))

    def entropy(self) -> jax.Array:
        """The differential entropy."""
        return 0.5 * (self.loc.shape[-1] * (1 + math.log(2 * math.pi)) + self.log_det())

    def kl(self, other: LowRankMultivariateNormal) -> jax.Array:
        """The divergence from another."""
        trace = (other.precision_matrix * self.covariance_matrix).sum((-2, -1))
        distance = other.distance(other.loc - self.loc)
        return 0.5 * (other.log_det() - self.log_det() + distance + trace - self.loc.shape[-1])


class Gamma(Distribution):
    """Waiting times for several events. https://docs.pytorch.org/docs/stable/distributions.html#gamma"""

    has_rsample = True
    names = ("concentration", "rate")

    def __init__(self, concentration: ArrayLike, rate: ArrayLike, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)

    @property
    def mean(self) -> jax.Array:
        """The mean."""
        return self.concentration / self.rate

    @property
    def mode(self) -> jax.Array:
        """The most probable value."""
        return clamp((self.concentration - 1) / self.rate, 0)

    @property
    def variance(self) -> jax.Array:
        """The variance."""
        return self.concentration / self.rate**2

    def rsample(self, sample_shape: Sequence[int] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws that the parameters get gradients through."""
        value = jax.random.gamma(rngs(), self.concentration, self.extended(sample_shape), self.rate.dtype) / self.rate
        tiny = float(jnp.finfo(value.dtype).tiny)
        return value + jax.lax.stop_gradient(jnp.where(value < tiny, tiny - value, 0))

    def log_prob(self, value: ArrayLike) -> jax.Array:
        """The logarithm of the density."""
        value, xlogy = jnp.asarray(value, self.rate.dtype), jax.scipy.special.xlogy
        powers = xlogy(self.concentration, self.rate) + xlogy(self.concentration - 1, value)
        return powers - self.rate * value - log_gamma(self.concentration)

    def entropy(self) -> jax.Array:
        """The differential entropy."""
        k = self.concentration
        return k - jnp.log(self.rate) + log_gamma(k) + (1 - k) * digamma(k)

    def kl(self, other: Gamma) -> jax.Array:
        """The divergence from another."""
        k, k_other = self.concentration, other.concentration
        shapes = log_gamma(k_other) - log_gamma(k) + (k - k_other) * digamma(k)
        return k_other * jnp.log(self.rate / other.rate) + shapes + (other.rate - self.rate) * (k / self.rate)


class Dirichlet(Distribution):
    """Vectors of positive numbers that sum to 1. https://docs.pytorch.org/docs/stable/distributions.html#dirichlet"""

    has_rsample = True

    def __init__(self, concentration: jax.Array, validate_args: bool | None = None) -> None:
        self.concentration = concentration

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the parameters but the last axis."""
        return tuple(self.concentration.shape[:-1])

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of one draw."""
        return tuple(self.concentration.shape[-1:])

    @property
    def mean(self) -> jax.Array:
        """The mean."""
        return self.concentration / self.concentration.sum(-1, keepdims=True)

    @property
    def variance(self) -> jax.Array:
        """The variance of each component."""
        total = self.concentration.sum(-1, keepdims=True)
        return self.concentration * (total - self.concentration) / (total**2 * (total + 1))

    def expand(self, batch_shape: Sequence[int]) -> Dirichlet:
        """The distribution with its parameters broadcast."""
        return Dirichlet(jnp.broadcast_to(self.concentration, (*batch_shape, *self.event_shape)))

    def rsample(self, sample_shape: Sequence[int] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws that the parameters get gradients through."""
        return jax.random.dirichlet(rngs(), self.concentration, (*sample_shape, *self.batch_shape), self.concentration.dtype)

    def log_prob(self, value: jax.Array) -> jax.Array:
        """The logarithm of the density."""
        k = self.concentration
        return jax.scipy.special.xlogy(k - 1.0, value).sum(-1) + log_gamma(k.sum(-1)) - log_gamma(k).sum(-1)

    def entropy(self) -> jax.Array:
        """The differential entropy."""
        k, total = self.concentration, self.concentration.sum(-1)
        normaliser = log_gamma(k).sum(-1) - log_gamma(total)
        return normaliser - (k.shape[-1] - total) * digamma(total) - ((k - 1.0) * digamma(k)).sum(-1)

    def kl(self, other: Dirichlet) -> jax.Array:
        """The divergence from another."""
        p, q = self.concentration, other.concentration
        normalisers = log_gamma(p.sum(-1)) - log_gamma(q.sum(-1)) - (log_gamma(p) - log_gamma(q)).sum(-1)
        return normalisers + ((p - q) * (digamma(p) - digamma(p.sum(-1))[..., None])).sum(-1)


class Beta(Distribution):
    """Numbers between 0 and 1. https://docs.pytorch.org/docs/stable/distributions.html#beta"""

    has_rsample = True
    names = ("concentration1", "concentration0")

    def __init__(self, concentration1: ArrayLike, concentration0: ArrayLike, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)

    def pair(self) -> Dirichlet:
        """The distribution of the number and 1 minus it."""
        return Dirichlet(jnp.stack([self.concentration1, self.concentration0], -1))

    @property
    def mean(self) -> jax.Array:
        """The mean."""
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def variance(self) -> jax.Array:
        """The variance."""
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total**2 * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = (), *, rngs: nnx.Rngs) -> jax.Array:
        """Draws that the parameters get gradients through."""
        return self.pair().rsample(sample_shape, rngs=rngs)[..., 0]

    def log_prob(self, value: jax.Array) -> jax.Array:
        """The logarithm of the density."""
        return self.pair().log_prob(jnp.stack([value, 1.0 - value], -1))

    def entropy(self) -> jax.Array:
        """The differential entropy."""
        return self.pair().entropy()

    def kl(self, other: Beta) -> jax.Array:
        """The divergence from another."""
        return self.pair().kl(other.pair())
