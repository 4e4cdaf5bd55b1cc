"""Large random arrays that are told by a seed: each side of a comparison draws them itself, and no file holds them. numpy only.

The generator is counter-based (Philox: Salmon et al., 2011), keyed by the seed and the array's name, so that arrays may be drawn in any order.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

LARGE: Final = 2**18
"""Arrays with at least so many elements are drawn by seeds: 2 MiB in float64."""
PIECE: Final = 2**16
"""So many elements are drawn at once."""


@dataclass(frozen=True)
class Recipe:
    """How an array is drawn: normal numbers around `centre` with the standard deviation `scale`, as float32 holds them, in `dtype`."""

    key: tuple[int, ...]
    centre: float
    scale: float
    shape: tuple[int, ...]
    dtype: str

    @classmethod
    def named(cls, seed: Sequence[int], name: str, centre: float, scale: float, like: NDArray[Any]) -> Self:
        """The recipe of the array of this name, of the shape and dtype of `like`."""
        return cls((*seed, zlib.crc32(name.encode())), centre, scale, like.shape, like.dtype.name)

    def draw(self) -> SeededArray:
        """The array."""
        generator = np.random.Generator(np.random.Philox(np.random.SeedSequence(self.key)))
        flat = np.empty(math.prod(self.shape), self.dtype)
        piece = np.empty(min(flat.size, PIECE), np.float32)
        # The numbers are those of one call. Small pieces stay in the processor's cache.
        for start in range(0, flat.size, PIECE):
            values = piece[: flat.size - start]
            generator.standard_normal(dtype=np.float32, out=values)
            values *= np.float32(self.scale)
            values += np.float32(self.centre)
            flat[start : start + PIECE] = values
        array = flat.reshape(self.shape).view(SeededArray)
        array.recipe = self
        array.flags.writeable = False  # what is written later would be in no recipe
        return array

    def to_bytes(self) -> NDArray[np.uint8]:
        """As an array of bytes, which a file of arrays can hold."""
        return np.frombuffer(json.dumps(asdict(self)).encode(), np.uint8)

    @classmethod
    def from_bytes(cls, stored: NDArray[np.uint8]) -> Self:
        """From what `to_bytes` gave. Raises `ValueError`, `KeyError`, `TypeError`."""
        row = json.loads(stored.tobytes())
        return cls(**{**row, "key": tuple(row["key"]), "shape": tuple(row["shape"])})


class SeededArray(np.ndarray[Any, np.dtype[Any]]):
    """An array that knows its recipe. What is computed of it has none."""

    recipe: Recipe | None = None
