"""Numbers that modules draw while they are called, the same for both sides: the n-th draw of a kind and shape after training has begun."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

KINDS = ("uniform", "normal", "exponential", "integers")


class PairedDraws:
    """A source of standard draws in float64, off until the first optimizer is constructed.

    What the script itself draws comes from torch's own stream on both sides. What a module draws while it is called cannot, since JAX has keys of its
    own there.
    """

    def __init__(self) -> None:
        self.active = False
        self.drew = False
        """Whether a module drew numbers that are others in the program's own precision, masks too."""
        self._counts: Counter[tuple[str, tuple[int, ...]]] = Counter()

    def draw(self, kind: str, shape: Sequence[int]) -> Any:
        """Uniform numbers (integers too, as parts of their range), standard normal or standard exponential ones, float64 of that shape."""
        self.drew = True
        size = tuple(int(n) for n in shape)
        number = self._counts[kind, size]
        self._counts[kind, size] += 1
        generator = np.random.default_rng([KINDS.index(kind), number, *size])
        if kind == "normal":
            return np.asarray(generator.standard_normal(size))
        if kind == "exponential":
            return np.asarray(generator.standard_exponential(size))
        return np.asarray(generator.random(size))
