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
CACHED: Final = 2**16
"""Elements that are worked on at once."""


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
            _add(sums, flat[start : start + ELEMENTS // count * count], generator)
        return Sketch.of(np.asarray(sums * np.sqrt(count / flat.size), value.dtype), Extremes(_extremes(flat), flat.size / count))


def _add(sums: Array, part: Array, generator: np.random.Generator) -> None:
    """Add an array [n] with random signs to the sums, a few rows of these at a time: they stay in the processor's cache."""
    bits = np.unpackbits(np.frombuffer(generator.bytes(-(-part.size // 8)), np.uint8), count=part.size)
    step = max(CACHED // sums.size, 1) * sums.size
    for start in range(0, part.size, step):
        signed = _signed(part[start : start + step].astype(sums.dtype), bits[start : start + step])
        whole = signed.size // sums.size * sums.size
        sums += signed[:whole].reshape(-1, sums.size).sum(axis=0)
        sums[: signed.size - whole] += signed[whole:]


def _signed(part: Array, bits: Array) -> Array:
    """The array [n] with the signs of these bits, which it is given in place."""
    if part.dtype.kind == "c":
        return np.where(bits, part, -part)
    signs = bits.astype(np.uint64)
    signs ^= 1
    signs <<= 63
    words = part.view(np.uint64)
    words ^= signs
    return part


def _extremes(flat: Array) -> Array:
    """The least and the largest finite elements of an array [n] of at least 2 `EXTREMES`, in order; 0 in place of those that are missing."""
    kept: Array = np.zeros(0)
    for start in range(0, flat.size, CACHED):
        part = flat[start : start + CACHED]
        real = np.asarray(np.abs(part) if part.dtype.kind == "c" else part, np.float64)
        if kept.size == 2 * EXTREMES:
            real = real[(real < kept[EXTREMES - 1]) | (real > kept[EXTREMES])]  # what is between is none of them; nor is NaN
        kept = _ends(np.concatenate([kept, real[np.isfinite(real)]]))
    return np.sort(np.append(kept, np.zeros(2 * EXTREMES - kept.size)))


def _ends(values: Array) -> Array:
    """The least and the largest `EXTREMES` of these values [n], in order; all of them where there are fewer."""
    if values.size > 2 * EXTREMES:
        ends = np.partition(values, (EXTREMES - 1, values.size - EXTREMES))
        values = np.concatenate([ends[:EXTREMES], ends[-EXTREMES:]])
    return np.sort(values)


@cache
def _primes() -> tuple[int, ...]:
    """The `SHAPES` primes from `PROJECTIONS` on."""
    last = 2 * PROJECTIONS
    composite = np.zeros(last, bool)
    for number in range(2, int(last**0.5) + 1):
        composite[number * number :: number] = True
    return tuple(int(number) for number in np.flatnonzero(~composite) if number >= PROJECTIONS)[:SHAPES]
