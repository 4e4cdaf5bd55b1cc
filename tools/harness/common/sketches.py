"""Sketches of large arrays: few numbers that differ between two arrays about as much as these do. numpy only.

Both sides of a comparison make them of their own results, so that no large result is written or read. A sketch is linear, so the comparisons of
whole arrays (`compare_arrays`) hold for it as they are:

* Number j is the sum of the k elements j, j + m, j + 2m, … with random signs, divided by sqrt(k); m is a prime, so that neighbours and columns fall
  apart. The mean of the squares over the draws of the signs is that of the elements' own squares (Alon, Matias and Szegedy, 1996), whatever the
  array. Its relative deviation is at most sqrt(2 / m), 1.1 %, where an error is spread over all of the m numbers, and 0 where no two wrong
  elements share one. An RMS error beyond 1.04 times a limit is refused but for one in 10^9.
* An error of one element keeps its part of the RMS, and stands out less by sqrt(k): the limit on one element (`tolerances.WORST_FACTOR`) is
  coarser by that, 4 for 2^18 elements and 46 for 2^25.
* Its length depends on the array's shape, so that arrays of different shapes differ.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

LARGE: Final = 2**18
"""Arrays of floats with at least so many elements are sketched: 2 MiB in float64."""
PROJECTIONS: Final = 2**14
"""The least number of projections."""
SHAPES: Final = 1024
"""So many numbers of projections are in use, by shape."""
ELEMENTS: Final = 2**22
"""Elements whose signs are drawn at once, which bounds the memory beside the array."""


def sketched(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays, by name, with sketches in the place of large ones."""
    return {name: sketch(value) if is_large(value) else value for name, value in arrays.items()}


def is_large(value: Array) -> bool:
    """Whether an array is sketched."""
    return value.dtype.kind in "fc" and value.size >= LARGE


def sketch(value: Array) -> Array:
    """The sketch [projections] of a float or complex array of any shape, in its own dtype; the same on every call."""
    code = zlib.crc32(repr(value.shape).encode())
    count = _primes()[code % SHAPES]
    flat, generator = np.ascontiguousarray(value).reshape(-1), np.random.Generator(np.random.Philox(key=code))
    sums: Array = np.zeros(count, np.complex128 if flat.dtype.kind == "c" else np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        for start in range(0, flat.size, ELEMENTS // count * count):
            part = _signed(flat[start : start + ELEMENTS // count * count], generator).astype(sums.dtype)
            whole = part.size // count * count
            sums += part[:whole].reshape(-1, count).sum(axis=0)
            sums[: part.size - whole] += part[whole:]
        return np.asarray(sums * np.sqrt(count / flat.size), value.dtype)


def _signed(part: Array, generator: np.random.Generator) -> Array:
    """A copy of the array [n] with random signs."""
    bits = np.unpackbits(np.frombuffer(generator.bytes(-(-part.size // 8)), np.uint8), count=part.size)
    return np.where(bits, part, -part)


@cache
def _primes() -> tuple[int, ...]:
    """The `SHAPES` primes from `PROJECTIONS` on."""
    last = 2 * PROJECTIONS
    composite = np.zeros(last, bool)
    for number in range(2, int(last**0.5) + 1):
        composite[number * number :: number] = True
    return tuple(int(number) for number in np.flatnonzero(~composite) if number >= PROJECTIONS)[:SHAPES]
