"""Sizes that a relation may tie: 2T - 1 distances beside T tokens, H * W tokens beside an image of H by W. Standard library only.

Code that refuses another size alone may take it where other sizes go along. Nobody says which relation holds: the numbers tell which may, and the
original decides, since it refuses the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, product

TOGETHER = 2
"""So many other sizes go along with one, at most."""
Relation = Callable[[int, int, int], Iterator[int]]
"""Of a size, another one, and what the first becomes: what the other may become, where the relation may hold between the two as they are."""


def along(size: int, other: int, new: int) -> list[int]:
    """What `other` may be where `size` becomes `new`, the simplest relation first; never what it is, nor an axis of 1, which may be
    broadcast by chance."""
    values = (value for relation in RELATIONS for value in relation(size, other, new))
    return list(dict.fromkeys(value for value in values if value > 1 and value != other))


def tied(size: int, new: int, others: Sequence[int]) -> Iterator[Mapping[int, int]]:
    """Tables of size → new size, in which `size` becomes `new`, and one other size goes along, or several, by a relation each."""
    for number in range(1, TOGETHER + 1):
        for partners in combinations(others, number):
            for values in product(*(along(size, other, new) for other in partners)):
                yield {size: new, **dict(zip(partners, values, strict=True))}


def _difference(size: int, other: int, new: int) -> Iterator[int]:
    yield other + new - size


def _multiple(size: int, other: int, new: int) -> Iterator[int]:
    """`other` is two, or about so many times `size`, and a constant: 2T - 1, or 4T + 1."""
    for factor in sorted({2, other // size, -(-other // size)} - {0, 1}):
        yield other + factor * (new - size)


def _proportion(size: int, other: int, new: int) -> Iterator[int]:
    """`other` grows as `size` does, or as its square: H * W beside H, or the patches beside a side."""
    for power in (1, 2):
        if other * new**power % size**power == 0:
            yield other * new**power // size**power


def _square(size: int, other: int, new: int) -> Iterator[int]:
    """`other` is the square of `size`, or of all its distances, and a constant below `size`, such as a class token."""
    for side, side_then in ((size, new), (2 * size - 1, 2 * new - 1)):
        if 0 <= other - side**2 < size:
            yield other - side**2 + side_then**2


def _root(size: int, other: int, new: int) -> Iterator[int]:
    """`size` is the square of `other`, and becomes a square."""
    if other**2 == size and math.isqrt(new) ** 2 == new:
        yield math.isqrt(new)


def _pairs(size: int, other: int, new: int) -> Iterator[int]:
    """`other` counts the pairs among so many, each with itself or not."""
    for shift in (-1, 1):
        if 2 * other == size * (size + shift):
            yield new * (new + shift) // 2


RELATIONS: tuple[Relation, ...] = (_difference, _multiple, _proportion, _square, _root, _pairs)
