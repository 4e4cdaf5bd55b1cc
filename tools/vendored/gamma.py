"""Digamma, polygamma and Hurwitz zeta functions, right at negative arguments too (https://pytorch.org/docs/stable/special.html)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike

from migrate_agent.tools.vendored.bessel import as_floating
from migrate_agent.tools.vendored.numeric import promote_half


def with_derivative(function: Callable[..., jax.Array], derivative: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """`function` with its derivative by the last argument given; by the others it has none."""
    wrapped: Any = jax.custom_jvp(function)

    def jvp(primals: tuple[jax.Array, ...], tangents: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        return wrapped(*primals), derivative(*primals) * tangents[-1]

    wrapped.defjvp(jvp)
    result: Callable[..., jax.Array] = wrapped
    return result


def zeta_value(x: jax.Array, q: jax.Array) -> jax.Array:
    """The Hurwitz zeta function. Negative `q` are brought above 0 one term at a time; then by JAX's own."""
    x, q = jnp.broadcast_arrays(x, q)
    moves = (q < 0) & (q != jnp.floor(q)) & (x == jnp.floor(x)) & (x > 1) & jnp.isfinite(q)

    def step(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        total, at = state
        below = moves & (at < 0)
        return total + jnp.where(below, jnp.where(below, at, 1.0) ** -x, 0.0), jnp.where(below, at + 1, at)

    start = (jnp.zeros_like(q), jnp.where(moves, q, 1.0))
    total, at = lax.while_loop(lambda state: jnp.any(state[1] < 0), step, start)
    result = total + jax.scipy.special.zeta(x, jnp.where(moves, at, jnp.where(q > 0, q, 1.0)))
    edge = jnp.where((q <= 0) & (q == jnp.floor(q)), jnp.inf, jnp.nan)
    known = jnp.where((q > 0) | moves, result, edge)
    return jnp.where(x == 1, jnp.inf, jnp.where((x < 1) | jnp.isnan(x) | jnp.isnan(q), jnp.nan, known))


def hurwitz_zeta(x: ArrayLike, q: ArrayLike) -> jax.Array:
    """`torch.special.zeta` of tensors, numbers and integers; no gradient flows to `x`.

    https://pytorch.org/docs/stable/special.html#torch.special.zeta
    """
    dtype = jnp.result_type(x, q)
    dtype = dtype if jnp.issubdtype(dtype, jnp.inexact) else jnp.zeros((), float).dtype
    x, q = jnp.broadcast_arrays(jnp.asarray(x, dtype), jnp.asarray(q, dtype))
    return with_derivative(zeta_value, lambda x, q: -x * hurwitz_zeta(x + 1, q))(lax.stop_gradient(x), q)


def trigamma(x: jax.Array) -> jax.Array:
    """The derivative of digamma, by reflection below 1/2; the series is cut where torch cuts it."""
    reflected = x < 0.5
    ahead = jnp.where(reflected, 1 - x, x)
    total = jnp.zeros_like(x)
    for _ in range(6):
        total, ahead = total + 1 / (ahead * ahead), ahead + 1
    inverse = 1 / (ahead * ahead)
    total = total + (1 + 1 / (2 * ahead) + inverse * (1 / 6 - inverse * (1 / 30 - inverse / 42))) / ahead
    sine = jnp.sin(jnp.pi * jnp.where(reflected, x, 0.25))
    return jnp.where(reflected, (jnp.pi / sine) ** 2 - total, total)


def digamma_value(x: jax.Array) -> jax.Array:
    """Digamma: -inf at 0 (inf at -0), NaN at negative integers, by reflection below 0."""
    negative = x < 0
    pole = negative & (x == jnp.trunc(x))
    inside = jnp.where(negative & ~pole, x - jnp.trunc(x), 0.25)
    positive = lax.digamma(jnp.where(negative, 1 - x, jnp.where(x == 0, 1.0, x)))
    below = jnp.where(pole, jnp.nan, positive - jnp.pi / jnp.tan(jnp.pi * inside))
    return jnp.where(x == 0, jnp.copysign(jnp.inf, -x), jnp.where(negative, below, positive))


def polygamma_value(n: int, x: jax.Array) -> jax.Array:
    """The polygamma function of floating-point numbers."""
    if n < 2:
        return trigamma(x) if n else digamma_value(x)
    order = jnp.asarray(n + 1.0, x.dtype)
    return (1 if n % 2 else -1) * jnp.exp(lax.lgamma(order)) * hurwitz_zeta(order, x)


def polygamma(n: int, x: jax.Array) -> jax.Array:
    """The `n`-th derivative of digamma (https://pytorch.org/docs/stable/special.html#torch.special.polygamma)."""
    wide = promote_half(as_floating(x))
    return with_derivative(partial(polygamma_value, n), partial(polygamma, n + 1))(wide).astype(as_floating(x).dtype)


def digamma(x: jax.Array) -> jax.Array:
    """The derivative of `log |gamma|` (https://pytorch.org/docs/stable/special.html#torch.special.digamma)."""
    return polygamma(0, x)


def log_gamma(x: jax.Array) -> jax.Array:
    """`log |gamma(x)|`, with its derivative right at negative numbers too (https://pytorch.org/docs/stable/special.html#torch.special.gammaln)."""
    return with_derivative(lax.lgamma, digamma)(as_floating(x))


def multigammaln(x: jax.Array, p: int) -> jax.Array:
    """The log of the multivariate gamma function (https://pytorch.org/docs/stable/special.html#torch.special.multigammaln)."""
    steps = jnp.arange(p) / 2
    return log_gamma(as_floating(x)[..., None] - steps.astype(as_floating(x).dtype)).sum(-1) + p * (p - 1) / 4 * math.log(math.pi)
