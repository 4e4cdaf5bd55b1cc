"""Sides of square images, by what is left of them where two sizes do not fit."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from migrate_agent.tools.record.guessing.values import Tensor

LARGEST_SIDE = 512
WINDOW = re.compile(r"Given input size: \(\d+x(\d+)x\d+\)\. Calculated output size: \(\d+x(-?\d+)x-?\d+\)")


def sides_of_windows(images: Mapping[str, Tensor], error: str) -> Iterator[int]:
    """Sides of square images of which so much is left that a window fits in: 224 where one of 32 has become 1 by 1, and the window has 7 by 7."""
    sides = {image.shape[2] for image in images.values() if len(image.shape) == 4 and image.shape[2] == image.shape[3]}
    if (match := WINDOW.search(error)) is not None and len(sides) == 1:
        left, less = map(int, match.groups())
        side = sides.pop() * (left - less + 1) // max(left, 1)
        yield from (side,) if side <= LARGEST_SIDE else ()


def sides_in_ratio(images: Mapping[str, Tensor], sizes: Sequence[int]) -> Iterator[int]:
    """Sides of square images in the ratio of what does not fit: 4 where one of 32 meets 4 by 4, 16 where 8 by 8 is left and 4 by 4 is wanted."""
    sides = {image.shape[2] for image in images.values() if len(image.shape) == 4 and image.shape[2] == image.shape[3]}
    for side in sides if len(sides) == 1 and len(sizes) == 2 and 0 not in sizes else ():
        for now, then in (sizes, tuple(reversed(sizes))):
            if side * then % now == 0 and 0 < side * then // now <= LARGEST_SIDE:
                yield side * then // now


def sides_of_patches(images: Mapping[str, Tensor], counts: Sequence[int]) -> Iterator[int]:
    """Sides of square images that give as many patches as are expected: 224 where one of 32 gives 4 and 196 are wanted, and a token or two beside them."""
    sides = {image.shape[2] for image in images.values() if len(image.shape) == 4 and image.shape[2] == image.shape[3]}
    for extra in range(3) if len(sides) == 1 and len(counts) == 2 else ():
        now, then = (math.isqrt(max(count - extra, 0)) for count in counts)
        if now > 0 and then > 0 and (now**2 + extra, then**2 + extra) == tuple(counts):
            side = sides.copy().pop()
            yield from (side * a // b for a, b in ((then, now), (now, then)) if side * a % b == 0 and 0 < side * a // b <= LARGEST_SIDE)
