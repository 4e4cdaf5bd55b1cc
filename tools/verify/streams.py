"""The shared source of random numbers: the n-th draw of a kind is the same array on both sides, whatever framework asks for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from migrate_agent.tools.verify import limits

KINDS = ("uniform", "normal", "integers", "exponential", "permutation")
HOST = "host"
"""The kind of draws from a generator of Python or numpy, which cannot be paired, and which `jit` fixes."""
Tilt = Literal["", "low", "high"]
"""Where single uniform numbers and integers are drawn: anywhere, or at the low or the high end of their range."""


class Draw(NamedTuple):
    """One draw: what was asked for, and for `bernoulli` the probability of a one where it was known."""

    kind: str
    shape: tuple[int, ...]
    rate: float | None = None


@dataclass
class Stream:
    """Draws by kind and call order, and remembers them. `bernoulli` always gives ones (nothing is dropped), so masks pair up trivially.

    `tilt`: a single number often decides which way a call goes, and one number decides for one way.
    """

    seed: int
    tilt: Tilt = ""
    draws: list[Draw] = field(default_factory=list)
    tied: bool = False
    """Whether the largest of equal numbers were chosen, which is up to an algorithm."""
    _counts: Counter[str] = field(default_factory=Counter)

    def draw(self, kind: str, shape: Sequence[int]) -> NDArray[np.float64]:
        """Standard draws of `shape`, float64: uniform and integers in [0, 1), standard normal, standard exponential, or a permutation's order."""
        size = tuple(int(n) for n in shape)
        self.draws.append(Draw(kind, size))
        generator = np.random.default_rng([self.seed, KINDS.index(kind), self._counts[kind]])
        self._counts[kind] += 1
        if kind == "normal":
            return np.asarray(generator.standard_normal(size))
        if kind == "exponential":
            return np.asarray(generator.standard_exponential(size))
        if kind == "permutation":
            return generator.permutation(size[0]).astype(np.float64)
        return self._tilted(np.asarray(generator.random(size)))

    def _tilted(self, standard: NDArray[np.float64]) -> NDArray[np.float64]:
        if not self.tilt or standard.size != 1:
            return standard
        return np.asarray(standard * limits.TILT if self.tilt == "low" else 1 - (1 - standard) * limits.TILT)

    def note(self, kind: str, shape: Sequence[int], rate: float | None = None) -> None:
        """Remember a draw that does not come from the stream (`bernoulli`, or a kind that cannot be paired)."""
        self.draws.append(Draw(kind, tuple(int(n) for n in shape), rate))

    def log(self) -> list[list[object]]:
        """The draws as JSON."""
        return [[draw.kind, list(draw.shape), draw.rate] for draw in self.draws]
