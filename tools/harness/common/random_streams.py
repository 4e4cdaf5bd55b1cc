"""The shared source of random numbers: the n-th draw of a kind is the same array on both sides, whatever framework asks for it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.harness.common.argument_changes import CONFIGURED

KINDS = ("uniform", "normal", "integers", "exponential", "permutation")
TRAINED = "again-trained"
"""The role of a scenario whose first call is in training mode, and its second in evaluation mode."""
HOST = "host"
"""The kind of draws from a generator of Python or numpy, which cannot be paired, and which `jit` fixes."""
Tilt = Literal["", "low", "high"]
"""Where uniform numbers and integers are drawn: anywhere, or every other one at the low, the others at the high end of their range (or reversed)."""
AXES = 6
"""Axes of a mask that are told apart."""
Mask = tuple[int, float | None]
"""What tells masks of dropout apart whatever their layout is: how many elements they have, and the rate of ones."""


class Draw(NamedTuple):
    """One draw: what was asked for, and for `bernoulli` the probability of a one where it was known."""

    kind: str
    shape: tuple[int, ...]
    rate: float | None = None


class Dropped(NamedTuple):
    """Which masks are zero: all, or the one of this number in the order of the draws, or those of this kind. `axis`: not all of them, but what
    has index 0 along one axis, told by its size and by which one of that size it is."""

    number: int | None = None
    mask: Mask | None = None
    axis: tuple[int, int] | None = None

    def kept(self, number: int, shape: Sequence[int], rate: float | None) -> NDArray[np.bool_]:
        """Of one mask: whether it has ones at all, and by axis whether it has them at index 0."""
        found = np.ones(1 + AXES, bool)
        if (self.number is not None and number != self.number) or (self.mask is not None and _mask(shape, rate) != self.mask):
            return found
        if self.axis is None:
            found[0] = False
            return found
        size, which = self.axis
        along = [place for place, length in enumerate(shape[:AXES]) if length == size][which : which + 1]
        found[[1 + place for place in along]] = False
        return found


def spread(kept: Any, shape: Sequence[int]) -> Any:
    """The mask that `Dropped.kept` describes, of a shape that broadcasts to `shape`. `kept` may be a traced array."""
    ones = kept[0]
    for axis, length in enumerate(shape[:AXES]):
        if length > 1:
            further = np.arange(length).reshape([-1 if place == axis else 1 for place in range(len(shape))]) > 0
            ones = ones & (kept[1 + axis] | further)
    return ones


class Drawing(NamedTuple):
    """How a stream draws where not as usual."""

    tilt: Tilt = ""
    dropped: Dropped | None = None
    ends: tuple[float, float] | None = None
    """The low and the high number of a tilt, where they are not those near the ends of the range."""

    @classmethod
    def of(cls, told: Sequence[Any]) -> Drawing:
        """From JSON."""
        tilt, dropped, ends = told
        between = ends and (ends[0], ends[1])
        if dropped is None:
            return cls(tilt, ends=between)
        number, mask, axis = dropped
        return cls(tilt, Dropped(number, mask and (mask[0], mask[1]), axis and (axis[0], axis[1])), between)


USUAL = Drawing()


class Customs(NamedTuple):
    """What the original makes of its draws, where a rewrite may make the same of draws of another kind."""

    compared: tuple[float, ...] = ()
    """Numbers that it compares uniform draws with: a mask of such a rate is drawn as that comparison."""
    exponential: bool = False
    """Whether it draws exponential numbers, and no uniform ones: Gumbel noise is made of those."""

    @classmethod
    def of(cls, told: Sequence[Any]) -> Customs:
        """From JSON."""
        return cls(tuple(told[0]), bool(told[1]))


NO_CUSTOMS = Customs()


def masks(draws: Sequence[Sequence[Any]]) -> list[Mask]:
    """The masks among logged draws, in their order."""
    return [_mask(shape, rate) for shape, rate in _shapes(draws)]


def layouts(draws: Sequence[Sequence[Any]]) -> list[tuple[Mask, list[int]]]:
    """The masks and the lengths of their axes, sorted: the same for masks that are each other's transpose, with axes of length 1 or without."""
    return sorted(((_mask(shape, rate), sorted(size for size in shape if size > 1)) for shape, rate in _shapes(draws)), key=str)


def zeroed(draws: Sequence[Sequence[Any]]) -> list[Dropped]:
    """Which masks are worth being zero: all together; each where they are few, else those of a kind; and those of a kind along one axis."""
    found = masks(draws)
    kinds = {_mask(shape, rate): shape for shape, rate in reversed(_shapes(draws))}
    alone = [Dropped(number) for number in range(len(found))] if 1 < len(found) <= tolerances.DROPPED else []
    alike = [Dropped(mask=kind) for kind in kinds] if not alone and len(kinds) > 1 else []
    along = [
        Dropped(mask=kind, axis=(size, which))
        for kind, shape in kinds.items()
        for size in sorted({size for size in shape if size > 1})
        for which in range(shape.count(size))
    ]
    return [Dropped(), *alone, *alike[: tolerances.DROPPED], *along[: tolerances.DROPPED]] if found else []


def _shapes(draws: Sequence[Sequence[Any]]) -> list[tuple[list[int], float | None]]:
    return [(list(shape), rate) for kind, shape, rate in draws if kind == "bernoulli"]


def _mask(shape: Sequence[int], rate: float | None) -> Mask:
    return math.prod(shape), None if rate is None else round(rate, tolerances.RATE_DIGITS)


def drawing(scenarios: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The first call in training mode, of the example or else of another configuration, in which torch draws; None where it never does."""
    roles = ("gradient", CONFIGURED)
    found = [facts for facts in scenarios if facts["role"] in roles and facts["mode"] == "train" and facts["draws"]]
    return min(found, key=lambda facts: roles.index(facts["role"]), default=None)


@dataclass
class Stream:
    """Draws by kind and call order, and remembers them. `bernoulli` gives ones (nothing is dropped) unless `drawing` says otherwise.

    `kept`, where given, says so of each mask by number, as `Dropped.kept` does; it may be a traced array.
    """

    seed: int
    drawing: Drawing = USUAL
    kept: Any = None
    draws: list[Draw] = field(default_factory=list)
    customs: Customs = NO_CUSTOMS
    crossed: list[list[object]] = field(default_factory=list)
    """Shapes and rates of the masks that were drawn so."""
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
        low, top = self.drawing.ends or (standard * tolerances.TILT, 1 - (1 - standard) * tolerances.TILT)
        return np.where(high, top, low)

    def mask(self, shape: Sequence[int], rate: float | None) -> Any:
        """Note a draw of `bernoulli`; whether it gives ones, of a shape that broadcasts to `shape`."""
        if (comparison := self.comparison(rate)) is not None:
            self.crossed.append([list(shape), rate])
            return comparison(self.draw("uniform", shape))
        number, self._counts["bernoulli"] = self._counts["bernoulli"], self._counts["bernoulli"] + 1
        self.note("bernoulli", shape, rate)
        if self.kept is not None:
            return spread(self.kept[min(number, len(self.kept) - 1)], shape)
        return self.drawing.dropped is None or spread(self.drawing.dropped.kept(number, shape, rate), shape)

    def comparison(self, rate: float | None) -> Callable[[Any], Any] | None:
        """What makes a mask of uniform draws as the other side does; None where it does not, or where that may be either side of one half."""
        sides = [
            side
            for number in self.customs.compared
            for side, wanted in (
                (lambda drawn, number=number: drawn >= number, 1 - number),
                (lambda drawn, number=number: drawn < number, number),
            )
            if rate is not None and abs(wanted - rate) <= tolerances.COMPARED
        ]
        return sides[0] if len(sides) == 1 else None

    def note(self, kind: str, shape: Sequence[int], rate: float | None = None) -> None:
        """Remember a draw that does not come from the stream (a mask, or a kind that cannot be paired)."""
        self.draws.append(Draw(kind, tuple(int(n) for n in shape), rate))

    def log(self) -> list[list[object]]:
        """The draws as JSON."""
        return [[draw.kind, list(draw.shape), draw.rate] for draw in self.draws]
