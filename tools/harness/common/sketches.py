"""Sketches of large arrays: few numbers that differ between two arrays about as much as these do. numpy only.

Both sides of a comparison make them of their own results, so that no large result is written or read. A sketch is linear, so the comparisons of
whole arrays (`compare_arrays`) hold for it as they are:

* Number j is the sum of the k elements j, j + m, j + 2m, … with random signs, divided by sqrt(k); m is a prime, so that neighbours and columns fall
  apart. The mean of the squares over the draws of the signs is that of the elements' own squares (Alon, Matias and Szegedy, 1996), whatever the
  array. Its relative deviation is at most sqrt(2 / m), 1.1 %, where an error is spread over all of the m numbers, and 0 where no two wrong
  elements share one. An RMS error beyond 1.04 times a limit is refused but for one in 10^9.
* An error of one element keeps its part of the RMS, and stands out less by sqrt(k): the limit on one element (`tolerances.WORST_FACTOR`) is
  coarser by that, 4 for 2^18 elements and 46 for 2^25. Beside the sums, the `EXTREMES` largest and smallest elements are kept as they are, in
  order: where no element of an array is off by more than a share of itself, none of these in order is, and they have the limit of one element.
* Its length depends on the array's shape, so that arrays of different shapes differ.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

LARGE: Final = 2**18
"""Arrays of floats with at least so many elements are sketched: 2 MiB in float64."""
PROJECTIONS: Final = 2**14
"""The least number of projections."""
SHAPES: Final = 1024
"""So many numbers of projections are in use, by shape."""
EXTREMES: Final = 32
"""So many of the largest elements are kept, and of the smallest; of complex arrays so many of the largest and smallest absolute values."""
ELEMENTS: Final = 2**22
"""Elements whose signs are drawn at once, which bounds the memory beside the array."""


class Extremes(NamedTuple):
    """The least and the largest finite elements in order [2 `EXTREMES`], and how many elements are in a sum of the sketch."""

    elements: Array
    terms: float

    def to_array(self) -> Array:
        """As one array, which a file of arrays can hold."""
        return np.append(self.elements, self.terms)

    @classmethod
    def from_array(cls, stored: Array) -> Extremes:
        """From what `to_array` gave."""
        return cls(stored[:-1], float(stored[-1]))


class Sketch(np.ndarray[Any, np.dtype[Any]]):
    """A sketch that knows its array's extremes. What is computed of it has none."""

    extremes: Extremes | None = None

    @classmethod
    def of(cls, sums: Array, extremes: Extremes) -> Sketch:
        """The sums of a sketch [projections] with the array's extremes."""
        made = np.asarray(sums).view(cls)
        made.extremes = extremes
        return made


def sketched(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays, by name, with sketches in the place of large ones."""
    return {name: sketch(value) if is_large(value) else value for name, value in arrays.items()}


def is_large(value: Array) -> bool:
    """Whether an array is sketched."""
    return value.dtype.kind in "fc" and value.size >= LARGE


def sketch(value: Array) -> Sketch:
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
        return Sketch.of(np.asarray(sums * np.sqrt(count / flat.size), value.dtype), Extremes(_extremes(flat), flat.size / count))


def _extremes(flat: Array) -> Array:
    """The least and the largest finite elements of an array [n] of at least 2 `EXTREMES`, in order; 0 in place of those that are missing."""
    finite = flat[np.isfinite(flat)]
    real = np.abs(finite) if flat.dtype.kind == "c" else finite
    padded = np.asarray(real if real.size >= 2 * EXTREMES else np.append(real, np.zeros(2 * EXTREMES - real.size)), np.float64)
    ends = np.partition(padded, (EXTREMES - 1, padded.size - EXTREMES))
    return np.sort(np.concatenate([ends[:EXTREMES], ends[-EXTREMES:]]))


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
