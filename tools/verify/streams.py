"""The shared source of random numbers: the n-th draw of a kind is the same array on both sides, whatever framework asks for it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from migrate_agent.tools.verify import limits

KINDS = ("uniform", "normal", "integers", "exponential", "permutation")
HOST = "host"
"""The kind of draws from a generator of Python or numpy, which cannot be paired, and which `jit` fixes."""
Tilt = Literal["", "low", "high"]
"""Where uniform numbers and integers are drawn: anywhere, or every other one at the low, the others at the high end of their range (or reversed)."""
Mask = tuple[int, float | None]
"""What tells masks of dropout apart whatever their layout is: how many elements they have, and the rate of ones."""


class Draw(NamedTuple):
    """One draw: what was asked for, and for `bernoulli` the probability of a one where it was known."""

    kind: str
    shape: tuple[int, ...]
    rate: float | None = None


class Dropped(NamedTuple):
    """Which masks are zero: all, or the one of this number in the order of the draws, or those of this kind."""

    number: int | None = None
    mask: Mask | None = None

    def covers(self, number: int, mask: Mask) -> bool:
        """Whether the mask of this number and kind is zero."""
        return (self.number is None or number == self.number) and (self.mask is None or mask == self.mask)


class Drawing(NamedTuple):
    """How a stream draws where not as usual."""

    tilt: Tilt = ""
    dropped: Dropped | None = None

    @classmethod
    def of(cls, told: Sequence[Any]) -> Drawing:
        """From JSON."""
        tilt, dropped = told
        number, mask = dropped or (None, None)
        return cls(tilt, Dropped(number, mask and (mask[0], mask[1])) if dropped is not None else None)


USUAL = Drawing()


def masks(draws: Sequence[Sequence[Any]]) -> list[Mask]:
    """The masks among logged draws, in their order."""
    return [_mask(shape, rate) for kind, shape, rate in draws if kind == "bernoulli"]


def zeroed(draws: Sequence[Sequence[Any]]) -> list[Dropped]:
    """Which masks are worth being zero: all together, and each where they are few, else those of a kind."""
    found = masks(draws)
    kinds = list(dict.fromkeys(found))
    alone = [Dropped(number) for number in range(len(found))] if 1 < len(found) <= limits.DROPPED else []
    alike = [Dropped(mask=kind) for kind in kinds[: limits.DROPPED]] if not alone and len(kinds) > 1 else []
    return [Dropped(), *alone, *alike] if found else []


def _mask(shape: Sequence[int], rate: float | None) -> Mask:
    return math.prod(shape), None if rate is None else round(rate, limits.RATE_DIGITS)


@dataclass
class Stream:
    """Draws by kind and call order, and remembers them. `bernoulli` gives ones (nothing is dropped) unless `drawing` says otherwise.

    `kept`, where given, says of each mask, by number, whether it is of ones; it may be a traced array.
    """

    seed: int
    drawing: Drawing = USUAL
    kept: Any = None
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
        if not self.drawing.tilt:
            return standard
        high = (np.arange(standard.size).reshape(standard.shape) % 2 == 1) == (self.drawing.tilt == "low")
        return np.where(high, 1 - (1 - standard) * limits.TILT, standard * limits.TILT)

    def mask(self, shape: Sequence[int], rate: float | None) -> Any:
        """Note a draw of `bernoulli`; whether it gives ones."""
        number, self._counts["bernoulli"] = self._counts["bernoulli"], self._counts["bernoulli"] + 1
        self.note("bernoulli", shape, rate)
        if self.kept is not None:
            return self.kept[min(number, len(self.kept) - 1)]
        return self.drawing.dropped is None or not self.drawing.dropped.covers(number, _mask(shape, rate))

    def note(self, kind: str, shape: Sequence[int], rate: float | None = None) -> None:
        """Remember a draw that does not come from the stream (a mask, or a kind that cannot be paired)."""
        self.draws.append(Draw(kind, tuple(int(n) for n in shape), rate))

    def log(self) -> list[list[object]]:
        """The draws as JSON."""
        return [[draw.kind, list(draw.shape), draw.rate] for draw in self.draws]
