"""Initial values of modules while a program is judged. Runs inside the sandbox.

The original's weights replace them. Drawn by JAX, each shape would be a program that is compiled first, which takes longer than all else of the
construction; NumPy draws them at once. Equal keys still give equal numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def initial_uniform(key: Any, low: Any, high: Any, shape: Any, dtype: Any) -> Any:
    """Uniform numbers from `low` to `high`, as `jax._src.random.core._uniform` takes them."""
    return _array(_stream(key).uniform(np.asarray(low), np.asarray(high), tuple(shape)), dtype)


def initial_normal(key: Any, shape: Any, dtype: Any) -> Any:
    """Standard normal numbers, as `_normal` takes them."""
    return _array(_stream(key).standard_normal(tuple(shape)), dtype)


def initial_truncated(key: Any, lower: Any, upper: Any, shape: Any, dtype: Any) -> Any:
    """Normal numbers between bounds, as `_truncated_normal` takes them: those beyond are drawn again, or lie at the bound after a few tries."""
    stream, low, high = _stream(key), np.asarray(lower), np.asarray(upper)
    size = tuple(shape) if shape is not None else np.broadcast_shapes(low.shape, high.shape)
    numbers = stream.standard_normal(size)
    for _ in range(8):
        beyond = (numbers < low) | (numbers > high)
        numbers = np.where(beyond, stream.standard_normal(size), numbers)
    return _array(np.clip(numbers, low, high), dtype)


INITIAL: dict[str, Callable[..., Any]] = {"_uniform": initial_uniform, "_normal": initial_normal, "_truncated_normal": initial_truncated}
"""What draws in `jax._src.random.core` → its counterpart."""


def is_concrete(*values: Any) -> bool:
    """Whether none of these values is traced, and no dtype among them is complex."""
    import jax

    traced = any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(values))
    return not traced and not any(isinstance(value, np.dtype) and value.kind == "c" for value in values)


def _stream(key: Any) -> np.random.Generator:
    import jax

    return np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel().tolist())


def _array(numbers: Any, dtype: Any) -> Any:
    import jax.numpy as jnp

    return jnp.asarray(numbers, dtype)
