"""Pointwise functions whose gradients or corner cases differ between torch and NumPy (https://pytorch.org/docs/stable/torch.html)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike, DTypeLike


def clamp(x: jax.Array, min: ArrayLike | None = None, max: ArrayLike | None = None) -> jax.Array:
    """`x` kept between `min` and `max`; at a bound the gradient passes, unlike `jnp.clip`'s.

    https://pytorch.org/docs/stable/generated/torch.clamp.html
    """
    if min is not None:
        x = jnp.where(x < min, min, x) if jnp.ndim(min) == 0 else jnp.where((x < min) | jnp.isnan(min), min, x)
    if max is not None:
        x = jnp.where(x > max, max, x) if jnp.ndim(max) == 0 else jnp.where((x > max) | jnp.isnan(max), max, x)
    return x


def cast(x: jax.Array, dtype: DTypeLike | None) -> jax.Array:
    """`x` in a dtype, or as it is where that is None (https://pytorch.org/docs/stable/generated/torch.Tensor.to.html)."""
    return x if dtype is None else x.astype(dtype)


def lerp(start: jax.Array, end: jax.Array, weight: ArrayLike) -> jax.Array:
    """`start + weight * (end - start)` (https://pytorch.org/docs/stable/generated/torch.lerp.html)."""
    return start + weight * (end - start)


def divide(x: ArrayLike, y: ArrayLike, rounding_mode: str | None = None) -> jax.Array:
    """Division, rounded towards zero (`trunc`), down (`floor`) or not at all (https://pytorch.org/docs/stable/generated/torch.div.html)."""
    if rounding_mode is None:
        return jnp.true_divide(x, y)
    if rounding_mode == "floor":
        return jnp.floor_divide(x, y)
    if jnp.issubdtype(jnp.result_type(x, y), jnp.integer):
        a, b = jnp.broadcast_arrays(x, y)
        dtype = jnp.result_type(x, y)
        return lax.div(a.astype(dtype), b.astype(dtype))
    return jnp.trunc(jnp.true_divide(x, y))


def scaled(x: ArrayLike, factor: float) -> jax.Array:
    """`x * factor` for a factor beyond float16, as torch computes it: in float32, rounded once to the dtype of `x`. 0 stays 0 beside infinity."""
    x = jnp.asarray(x)
    dtype = jnp.result_type(x, factor)
    return (x.astype(jnp.promote_types(dtype, jnp.float32)) * factor).astype(dtype)


def sign(x: jax.Array) -> jax.Array:
    """-1, 0 or 1; of NaN 0, and of complex numbers the unit vector (https://pytorch.org/docs/stable/generated/torch.sgn.html)."""
    return jnp.sign(x) if jnp.iscomplexobj(x) else jnp.sign(jnp.where(jnp.isnan(x), 0, x))


def heaviside(x: jax.Array, values: jax.Array) -> jax.Array:
    """0 below zero, 1 above, `values` at zero, in the dtype of the inputs (https://pytorch.org/docs/stable/generated/torch.heaviside.html)."""
    return jnp.where(x == 0, values, (x > 0).astype(jnp.result_type(x, values)))


def nextafter(x: jax.Array, y: jax.Array) -> jax.Array:
    """The next number after `x` towards `y`; the gradient passes to `x` where they differ.

    https://pytorch.org/docs/stable/generated/torch.nextafter.html
    """
    fixed = lax.stop_gradient(x)
    moves = jnp.where((x != y) & jnp.isfinite(x), x - fixed, 0)
    return jnp.nextafter(fixed, lax.stop_gradient(y)) + moves


def fmax(x: jax.Array, y: jax.Array) -> jax.Array:
    """The larger, or the one that is no NaN; of equal ones the gradient goes to `x` (https://pytorch.org/docs/stable/generated/torch.fmax.html)."""
    return jnp.where((x >= y) | jnp.isnan(y), x, y)


def fmin(x: jax.Array, y: jax.Array) -> jax.Array:
    """The smaller, or the one that is no NaN; of equal ones the gradient goes to `x` (https://pytorch.org/docs/stable/generated/torch.fmin.html)."""
    return jnp.where((x <= y) | jnp.isnan(y), x, y)


def integer_power(x: ArrayLike, exponent: jax.Array) -> jax.Array:
    """A power of integers: by a negative exponent 0, but of 1 and -1 (https://pytorch.org/docs/stable/generated/torch.pow.html)."""
    dtype = jnp.result_type(x, exponent)
    base, places = jnp.broadcast_arrays(jnp.asarray(x, dtype), jnp.asarray(exponent, dtype))
    units = jnp.where(base == 1, 1, jnp.where(base == -1, 1 - 2 * (places & 1), 0)).astype(dtype)
    return jnp.where(places < 0, units, base ** jnp.maximum(places, 0))


def float_power(x: ArrayLike, exponent: ArrayLike) -> jax.Array:
    """A power in the highest precision there is (https://pytorch.org/docs/stable/generated/torch.float_power.html)."""
    complex_valued = jnp.iscomplexobj(x) or jnp.iscomplexobj(exponent)
    dtype = complex if complex_valued else float
    return jnp.asarray(x, dtype) ** jnp.asarray(exponent, dtype)


def logit(x: jax.Array, eps: float | None = None) -> jax.Array:
    """`log(x / (1 - x))`, with `x` first kept between `eps` and `1 - eps` (https://pytorch.org/docs/stable/special.html#torch.special.logit)."""
    return jax.scipy.special.logit(x if eps is None else clamp(x, eps, 1 - eps))


def view_as_real(x: jax.Array) -> jax.Array:
    """Real and imaginary part as a last axis of size 2 (https://pytorch.org/docs/stable/generated/torch.view_as_real.html)."""
    return jnp.stack([x.real, x.imag], axis=-1)


def view_as_complex(x: jax.Array) -> jax.Array:
    """The inverse of `view_as_real` (https://pytorch.org/docs/stable/generated/torch.view_as_complex.html)."""
    return lax.complex(x[..., 0], x[..., 1])
