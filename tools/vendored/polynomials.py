"""Orthogonal polynomials by their recurrences (https://pytorch.org/docs/stable/special.html). Torch differentiates none of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike


def recurrence(
    x: ArrayLike, n: ArrayLike, first: Callable[[jax.Array], jax.Array], step: Callable[..., jax.Array], limit: int | None = None
) -> jax.Array:
    """The polynomial of degree `n` (cut to an integer; 0 where negative, NaN from `limit` on) from those of degree 0, 1 and the last two.

    `first(x)` is that of degree 1, `step(x, k, last, before)` that of degree `k + 1`.
    """
    dtype = jnp.result_type(x, n)
    x, n = jnp.broadcast_arrays(jnp.asarray(x, dtype if jnp.issubdtype(dtype, jnp.inexact) else float), n)
    x = lax.stop_gradient(x)  # as in torch; a loop whose length depends on values has no gradient either
    degree = n.astype(int)
    one, linear = jnp.ones_like(x), first(x)

    def body(k: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        before, last, result = state
        new = step(x, k, last, before)
        return last, new, jnp.where(degree == k + 1, new, result)

    highest = jnp.max(degree if limit is None else jnp.minimum(degree, limit), initial=0)
    *_, result = lax.fori_loop(1, highest, body, (one, linear, jnp.where(degree == 0, one, linear)))
    result = result if limit is None else jnp.where(degree > limit, jnp.nan, result)
    return jnp.where(degree < 0, 0, result)


def chebyshev_step(x: jax.Array, k: jax.Array, last: jax.Array, before: jax.Array) -> jax.Array:
    """The recurrence of all four kinds."""
    return 2 * x * last - before


chebyshev_polynomial_t = partial(recurrence, first=lambda x: x, step=chebyshev_step)
chebyshev_polynomial_u = partial(recurrence, first=lambda x: 2 * x, step=chebyshev_step)
chebyshev_polynomial_v = partial(recurrence, first=lambda x: 2 * x - 1, step=chebyshev_step)
chebyshev_polynomial_w = partial(recurrence, first=lambda x: 2 * x + 1, step=chebyshev_step)


def shifted(polynomial: Callable[..., jax.Array], x: ArrayLike, n: ArrayLike) -> jax.Array:
    """A polynomial over [0, 1] instead of [-1, 1]."""
    dtype = jnp.result_type(x, n)
    return polynomial(2 * jnp.asarray(x, dtype if jnp.issubdtype(dtype, jnp.inexact) else float) - 1, n)


shifted_chebyshev_polynomial_t = partial(shifted, chebyshev_polynomial_t)
shifted_chebyshev_polynomial_u = partial(shifted, chebyshev_polynomial_u)
shifted_chebyshev_polynomial_v = partial(shifted, chebyshev_polynomial_v)
shifted_chebyshev_polynomial_w = partial(shifted, chebyshev_polynomial_w)


def hermite_limit(x: ArrayLike, n: ArrayLike) -> int:
    """The degree above which torch gives NaN: 512 in double precision, else 128."""
    dtype = jnp.result_type(x, n)
    wide = jnp.zeros((), dtype if jnp.issubdtype(dtype, jnp.inexact) else float).dtype == jnp.float64
    return 512 if wide else 128


def hermite_polynomial_h(x: ArrayLike, n: ArrayLike) -> jax.Array:
    """The physicist's (https://pytorch.org/docs/stable/special.html#torch.special.hermite_polynomial_h)."""
    return recurrence(x, n, lambda x: 2 * x, lambda x, k, last, before: 2 * (x * last - k * before), hermite_limit(x, n))


def hermite_polynomial_he(x: ArrayLike, n: ArrayLike) -> jax.Array:
    """The probabilist's (https://pytorch.org/docs/stable/special.html#torch.special.hermite_polynomial_he)."""
    return recurrence(x, n, lambda x: x, lambda x, k, last, before: x * last - k * before, hermite_limit(x, n))


def laguerre_polynomial_l(x: ArrayLike, n: ArrayLike) -> jax.Array:
    """https://pytorch.org/docs/stable/special.html#torch.special.laguerre_polynomial_l"""
    return recurrence(x, n, lambda x: 1 - x, lambda x, k, last, before: ((2 * k + 1 - x) * last - k * before) / (k + 1))


def legendre_polynomial_p(x: ArrayLike, n: ArrayLike) -> jax.Array:
    """https://pytorch.org/docs/stable/special.html#torch.special.legendre_polynomial_p"""
    return recurrence(x, n, lambda x: x, lambda x, k, last, before: ((2 * k + 1) * x * last - k * before) / (k + 1))
