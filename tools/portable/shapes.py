"""The shapes of a call's arrays for another batch and length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Leaf = tuple[tuple[int, ...], str]
"""Shape and dtype of an array."""

NARROW = {"float64": "float32", "complex128": "complex64", "int64": "int32", "uint64": "uint32"}
"""64-bit dtypes → the dtypes that jax uses without x64 mode."""


def leaves_of(rows: Sequence[Sequence[Any]]) -> tuple[Leaf, ...]:
    """The rows of a job's result, in jax's dtypes."""
    return tuple((tuple(int(size) for size in shape), NARROW.get(dtype, dtype)) for shape, dtype in rows)


def batch_of(leaves: Sequence[Leaf]) -> int:
    """The batch of an example: the first axis of its first array that has one; 0 where none has."""
    return next((shape[0] for shape, _ in leaves if shape), 0)


def length_of(leaves: Sequence[Leaf]) -> int:
    """The length of an example: the second axis of its first array, where that is made of tokens (B, T) or features (B, T, C); else 0."""
    shape, dtype = next(((shape, dtype) for shape, dtype in leaves if len(shape) > 1), ((), ""))
    # A float array of two axes has features in the second, which is no length.
    tokens = len(shape) == 2 and "int" in dtype
    return shape[1] if tokens or len(shape) == 3 else 0


def resize(leaves: Sequence[Leaf], batch: int = 0, length: int = 0) -> tuple[Leaf, ...]:
    """The same arrays for this batch and length (0 leaves one as it is).

    The batch is the first axis, wherever it is as long as that of the first array; the length is every later axis that is as long as the
    second of the first array.
    """
    old_batch, old_length = batch_of(leaves), length_of(leaves)

    def size(axis: int, value: int) -> int:
        if axis == 0:
            return batch if batch and value == old_batch else value
        return length if length and old_length and value == old_length else value

    return tuple((tuple(size(axis, value) for axis, value in enumerate(shape)), dtype) for shape, dtype in leaves)
