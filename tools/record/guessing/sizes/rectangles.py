"""Images that are not square, where a layer takes as many numbers as no square leaves: 512 · 7 · 6 of an image of 112 × 96."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace

from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome
from migrate_agent.tools.record.guessing.values import Tensor, change_tensors, tensors

COUNTS = re.compile(r"mat1 and mat2 shapes cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)")
STRIDES = (32, 16, 8, 4, 2, 1)
"""By how much what layers leave of an image may be smaller than the image."""
LARGEST_SIDE = 512
LONGEST = 4
"""How many times as long as the other the longer side may be."""


def rectangles(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """The call with images of which as many numbers are left as a layer takes, of sides that are as alike as can be; the higher one first."""
    match = COUNTS.search(outcome.error)
    images = [tensor for _, value in attempt.call or () for tensor in tensors(value) if len(tensor.shape) == 4]
    sides = {tensor.shape[2:] for tensor in images}
    if match is None or len(sides) != 1:
        return
    before = sides.pop()
    brought, needed = int(match[1]), int(match[2])
    area, rest = divmod(math.prod(before) * needed, brought)
    for high, wide in _rectangles(area) if not rest else ():
        for now in dict.fromkeys([(high, wide), (wide, high)]):
            yield replace(
                attempt,
                call=tuple(
                    (name, change_tensors(value, lambda tensor: _with_sides(tensor, before, now)))  # noqa: B023
                    for name, value in attempt.call or ()
                ),
            )


def _rectangles(area: int) -> Iterator[tuple[int, int]]:
    """Sides of this area that are multiples of a stride; of the largest stride first."""
    sides: dict[tuple[int, int], None] = {}
    for stride in STRIDES:
        parts, rest = divmod(area, stride * stride)
        wide = next((size for size in range(math.isqrt(parts), 0, -1) if parts % size == 0), 0) if not rest else 0
        if wide and parts // wide <= LONGEST * wide and stride * parts // wide <= LARGEST_SIDE:
            sides[stride * (parts // wide), stride * wide] = None
    yield from sides


def _with_sides(tensor: Tensor, before: tuple[int, ...], now: tuple[int, int]) -> Tensor:
    return replace(tensor, shape=(*tensor.shape[:2], *now)) if len(tensor.shape) == 4 and tensor.shape[2:] == before else tensor
