"""Special functions that JAX lacks or that differ for integers or at the edges (https://pytorch.org/docs/stable/special.html)."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def i0(x: jax.Array) -> jax.Array:
    """Modified Bessel function of order 0, with gradient 0 at 0 (https://pytorch.org/docs/stable/special.html#torch.special.i0)."""
    return jnp.where(x == 0, 1.0, jax.scipy.special.i0(jnp.where(x == 0, 1.0, x)))


def entr(x: jax.Array) -> jax.Array:
    """`-x log x`, 0 at 0, -inf below (https://pytorch.org/docs/stable/special.html#torch.special.entr)."""
    return jax.scipy.special.entr(jnp.asarray(x, jnp.result_type(x, float) if not jnp.issubdtype(x.dtype, jnp.inexact) else x.dtype))


def ndtr(x: jax.Array) -> jax.Array:
    """Cumulative normal distribution (https://pytorch.org/docs/stable/special.html#torch.special.ndtr)."""
    return (1 + jax.scipy.special.erf(x * 0.5**0.5)) * 0.5


def erfcx(x: jax.Array) -> jax.Array:
    """Scaled complementary error function `exp(x²) erfc(x)` (https://pytorch.org/docs/stable/special.html#torch.special.erfcx).

    For x > 25, where `erfc` underflows, by its asymptotic series.
    """
    near = jnp.where(x > 25, 1.0, x)
    far = jnp.where(x > 25, x, 26.0)
    inverse = 1 / (2 * far**2)
    series = (1 - inverse * (1 - 3 * inverse * (1 - 5 * inverse * (1 - 7 * inverse)))) / (far * jnp.pi**0.5)
    return jnp.where(x > 25, series, jnp.exp(near**2) * jax.scipy.special.erfc(near))
