"""Arrays that are fixed when a module is built, and are no part of its state, or when a program is traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax

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
