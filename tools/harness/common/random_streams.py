"""The shared source of random numbers: the n-th draw of a kind is the same array on both sides, whatever framework asks for it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from migrate_agent.tools.harness.common import budgets
from migrate_agent.tools.harness.packed_lengths import Packed

KINDS = ("uniform", "normal", "integers", "exponential", "permutation", "beta")
HOST = "host"
"""The kind of draws from a generator of Python or numpy, which cannot be paired, and which `jit` fixes."""
REPEATED = "repeated"
"""The kind that stands for steps of a loop that all draw with one key, so that they draw the same numbers."""
Tilt = Literal["", "low", "high"]
"""Range of uniform numbers and integers: all of it, or alternately its low and high end ("low" starts low, "high" high)."""
AXES = 6
"""Number of axes along which a mask can be zeroed in part."""
Mask = tuple[int, float | None]
"""Identifies masks of dropout independently of their layout: the number of elements and the rate of ones."""


class Draw(NamedTuple):
    """One draw: its kind, its shape, and for `bernoulli` the probability of a one where it was known."""

    kind: str
    shape: tuple[int, ...]
    rate: float | None = None


class Dropped(NamedTuple):
    """The masks that are zero: all, or the one of this `number` in the order of the draws, or those that equal `mask`.

    With `axis` = (size, occurrence), only index 0 along that axis is zero.
    """

    number: int | None = None
    mask: Mask | None = None
    axis: tuple[int, int] | None = None

    def kept(self, number: int, shape: Sequence[int], rate: float | None) -> NDArray[np.bool_]:
        """Of one mask, bool [1 + AXES]: whether it has ones at all, and for each axis whether it has them at index 0."""
        flags = np.ones(1 + AXES, bool)
        if (self.number is not None and number != self.number) or (self.mask is not None and _mask(shape, rate) != self.mask):
            return flags
        if self.axis is None:
            flags[0] = False
            return flags
        size, occurrence = self.axis
        along = [position for position, length in enumerate(shape[:AXES]) if length == size][occurrence : occurrence + 1]
        flags[[1 + position for position in along]] = False
        return flags


def spread(mask_ones: Any, shape: Sequence[int]) -> Any:
    """The mask that `Dropped.kept` describes, of a shape that broadcasts to `shape`. `mask_ones`, bool [1 + AXES], may be traced."""
    mask = mask_ones[0]
    for axis, length in enumerate(shape[:AXES]):
        if length > 1:
            nonzero_index = np.arange(length).reshape([-1 if position == axis else 1 for position in range(len(shape))]) > 0
            mask = mask & (mask_ones[1 + axis] | nonzero_index)
    return mask


class Drawing(NamedTuple):
    """How a stream draws where it differs from the default."""

    tilt: Tilt = ""
    dropped: Dropped | None = None
    ends: tuple[float, float] | None = None
    """The low and the high number of a tilt, where they are not near the ends of the range."""

    @classmethod
    def of(cls, data: Sequence[Any]) -> Drawing:
        """From JSON."""
        tilt, dropped, ends = data
        between = ends and (ends[0], ends[1])
        if dropped is None:
            return cls(tilt, ends=between)
        number, mask, axis = dropped
        return cls(tilt, Dropped(number, mask and (mask[0], mask[1]), axis and (axis[0], axis[1])), between)


USUAL = Drawing()


class Customs(NamedTuple):
    """How the original uses its draws, where a rewrite may use draws of another kind for the same."""

    compared: tuple[float, ...] = ()
    """Numbers that it compares uniform draws with: a mask of that rate is drawn as the comparison."""
    exponential: bool = False
    """Whether it draws exponential and no uniform numbers: Gumbel noise is then made of exponential ones."""

    @classmethod
    def of(cls, data: Sequence[Any]) -> Customs:
        """From JSON."""
        return cls(tuple(data[0]), bool(data[1]))


NO_CUSTOMS = Customs()


def beta(standard: Any, a: Any, b: Any) -> Any:
    """A number of (0, 1) that stands for one of the beta distribution: the quantile of Kumaraswamy's, which depends on both parameters too."""
    # The quantile of the beta distribution itself has no closed form, and both sides only need one number that wrong parameters change.
    return (1 - (1 - standard) ** (1 / b)) ** (1 / a)


def masks(draws: Sequence[Sequence[Any]]) -> list[Mask]:
    """The masks among logged draws, in order."""
    return [_mask(shape, rate) for shape, rate in _shapes(draws)]


def layouts(draws: Sequence[Sequence[Any]]) -> list[tuple[Mask, list[int]]]:
    """The masks with the sorted lengths of their axes, length 1 left out: equal for a mask and its transpose."""
    return sorted(((_mask(shape, rate), sorted(size for size in shape if size > 1)) for shape, rate in _shapes(draws)), key=str)


def zeroed(draws: Sequence[Sequence[Any]]) -> list[Dropped]:
    """The ways to zero masks that are tried: all; each alone where they are few, else each kind; and each kind along one axis."""
    all_masks = masks(draws)
    kinds = {_mask(shape, rate): shape for shape, rate in reversed(_shapes(draws))}
    alone = [Dropped(number) for number in range(len(all_masks))] if 1 < len(all_masks) <= budgets.DROPPED else []
    alike = [Dropped(mask=kind) for kind in kinds] if not alone and len(kinds) > 1 else []
    along = [
        Dropped(mask=kind, axis=(size, occurrence))
        for kind, shape in kinds.items()
        for size in sorted({size for size in shape if size > 1})
        for occurrence in range(shape.count(size))
    ]
    return [Dropped(), *alone, *alike[: budgets.DROPPED], *along[: budgets.DROPPED]] if all_masks else []


def _shapes(draws: Sequence[Sequence[Any]]) -> list[tuple[list[int], float | None]]:
    return [(list(shape), rate) for kind, shape, rate in draws if kind == "bernoulli"]


def _mask(shape: Sequence[int], rate: float | None) -> Mask:
    return math.prod(shape), None if rate is None else round(rate, budgets.RATE_DIGITS)


@dataclass
class Stream:
    """Draws numbers by kind and call order, and logs the draws. `bernoulli` gives ones (nothing is dropped) unless `drawing` differs.

    `kept`, where given, has a row of `Dropped.kept` for each mask, bool [masks, 1 + AXES]; it may be
    traced.
    """

    seed: int
    drawing: Drawing = USUAL
    kept: Any = None
    draws: list[Draw] = field(default_factory=list)
    customs: Customs = NO_CUSTOMS
    crossed: list[list[object]] = field(default_factory=list)
    """Shapes and rates of the masks that were drawn as comparisons of uniform numbers."""
    optional: set[int] = field(default_factory=set)
    """The numbers of draws in branches, which a run takes or not."""
    tied: bool = False
    """Whether the run chose among equal numbers (`topk`), which depends on the algorithm."""
    packed: list[Packed] = field(default_factory=list)
    """The sequences that the run packed, in order."""
    _counts: Counter[str] = field(default_factory=Counter)

    def draw(self, kind: str, shape: Sequence[int]) -> NDArray[np.float64]:
        """Standard draws of `shape`, float64: uniform, integers and beta in [0, 1), standard normal, standard exponential, or a permutation's order."""
        size = tuple(int(n) for n in shape)
        self.draws.append(Draw(kind, size))
        # A generator of its own for each draw: both sides get equal numbers even where draws of
        # other kinds come in another order.
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
        # Alternating, so that a comparison of two neighbouring draws decides both ways.
        high = (np.arange(standard.size).reshape(standard.shape) % 2 == 1) == (self.drawing.tilt == "low")
        low, top = self.drawing.ends or (standard * budgets.TILT, 1 - (1 - standard) * budgets.TILT)
        return np.where(high, top, low)

    def mask(self, shape: Sequence[int], rate: float | None) -> Any:
        """Log a draw of `bernoulli`; returns whether each element is one, of a shape that broadcasts to `shape`."""
        if (comparison := self.comparison(rate)) is not None:
            self.crossed.append([list(shape), rate])
            return comparison(self.draw("uniform", shape))
        number, self._counts["bernoulli"] = self._counts["bernoulli"], self._counts["bernoulli"] + 1
        self.note("bernoulli", shape, rate)
        if rate is not None and rate <= 0:  # no element is ever one
            return False
        if self.kept is not None:
            # A run may draw more masks than were planned; they repeat the last one.
            return spread(self.kept[min(number, len(self.kept) - 1)], shape)
        return self.drawing.dropped is None or spread(self.drawing.dropped.kept(number, shape, rate), shape)

    def comparison(self, rate: float | None) -> Callable[[Any], Any] | None:
        """The comparison by which the original makes a mask of this rate of uniform draws; None where there is none, or two (at one half)."""
        sides = [
            side
            for number in self.customs.compared
            for side, side_rate in (
                (lambda drawn, number=number: drawn >= number, 1 - number),
                (lambda drawn, number=number: drawn < number, number),
            )
            if rate is not None and abs(side_rate - rate) <= budgets.COMPARED
        ]
        return sides[0] if len(sides) == 1 else None

    def note(self, kind: str, shape: Sequence[int], rate: float | None = None) -> None:
        """Log a draw that does not come from the stream (a mask, or a kind that cannot be paired)."""
        self.draws.append(Draw(kind, tuple(int(n) for n in shape), rate))

    def executed(self, numbers: Collection[int]) -> list[list[object]]:
        """The draws as JSON, without those in branches that a run did not take; `numbers` are those of the draws that ran.

        All of them where a draw that did not run came before one of its kind that did: the two sides count differently then.
        """
        left_out = {number for number in self.optional if number not in numbers}
        for number in left_out:
            kind = self.draws[number].kind
            if kind in KINDS and any(
                draw.kind == kind for later, draw in enumerate(self.draws) if later > number and later not in left_out
            ):
                return self.log()
        return [row for number, row in enumerate(self.log()) if number not in left_out]

    def log(self) -> list[list[object]]:
        """The draws as JSON."""
        return [[draw.kind, list(draw.shape), draw.rate] for draw in self.draws]
