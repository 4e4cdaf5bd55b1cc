"""Arrays that are fixed when a module is built, and are no part of its state, or when a program is traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

T = TypeVar("T")


class Static:
    """A numpy array, or a tuple of them, as a static attribute of a module: equal and hashed by its contents, so that programs are compiled once for each.

    `value` is the array. Its elements are plain numbers while a function is traced; it must not be changed once the module is called.
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def _contents(self) -> tuple[tuple[tuple[int, ...], str, bytes], ...]:
        arrays = self.value if isinstance(self.value, tuple) else (self.value,)
        return tuple((array.shape, str(array.dtype), array.tobytes()) for array in arrays)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self._contents() == other._contents()

    def __hash__(self) -> int:
        return hash(self._contents())

    def __repr__(self) -> str:
        return f"Static({self.value!r})"


def concrete(compute: Callable[[], T]) -> T:
    """What a computation from numbers alone gives, carried out while the program around it is traced: its values may decide shapes.

    Raises what JAX raises where it needs an array of that program.
    """
    with jax.ensure_compile_time_eval():
        return compute()


def unique(x: jax.Array, return_inverse: bool = False, return_counts: bool = False) -> Any:
    """The different values of an array that is known while tracing, in order (https://pytorch.org/docs/stable/generated/torch.unique.html).

    With options a tuple: where each element stands among them, of the shape of `x`, and how often each occurs. Raises what JAX raises for traced arrays.
    """
    values, inverse, counts = np.unique(np.asarray(x), return_inverse=True, return_counts=True)
    return known_parts(values, inverse.reshape(x.shape), counts, return_inverse, return_counts)


def unique_consecutive(x: jax.Array, return_inverse: bool = False, return_counts: bool = False) -> Any:
    """As `unique`, of each run of equal elements one (https://pytorch.org/docs/stable/generated/torch.unique_consecutive.html)."""
    flat = np.asarray(x).reshape(-1)
    begins = np.concatenate([np.ones(min(flat.size, 1), bool), flat[1:] != flat[:-1]])
    counts = np.diff(np.append(np.flatnonzero(begins), flat.size))
    return known_parts(flat[begins], (np.cumsum(begins) - 1).reshape(x.shape), counts, return_inverse, return_counts)


def known_parts(values: Any, inverse: Any, counts: Any, return_inverse: bool, return_counts: bool) -> Any:
    """The values alone, or with the parts that are asked for, as arrays that are known while tracing."""
    parts = [values, *([inverse] if return_inverse else []), *([counts] if return_counts else [])]
    with jax.ensure_compile_time_eval():
        arrays = tuple(jnp.asarray(part) for part in parts)
    return arrays if len(arrays) > 1 else arrays[0]
