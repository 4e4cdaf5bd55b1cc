"""What an error says of the shape that was wanted: torch's own messages, and Python's when a shape is unpacked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

Sizes = list[int]
SHAPE = re.compile(r"(torch\.randn?\(|torch\.randint\(\d+, \d+, \()([\d, ]+)\)")


class Message(NamedTuple):
    """An error whose text has this pattern → the sizes of the main input that it asks for, by the numbers in it."""

    pattern: str
    sizes: Callable[[Sizes, Sequence[int]], Sizes]


def channels(sizes: Sizes, found: Sequence[int]) -> Sizes:
    """(channels wanted): at place 1."""
    return [sizes[0], found[0], *sizes[2:]]


def last(sizes: Sizes, found: Sequence[int]) -> Sizes:
    """(size wanted): at the last place."""
    return [*sizes[:-1], found[0]]


def turned(sizes: Sizes, found: Sequence[int]) -> Sizes:
    """(size there, size wanted): of the last size, or of the one that ends up there, which is known by its number."""
    there, wanted = found
    if sizes[-1] == there or there not in sizes[1:]:
        return last(sizes, [wanted])
    at = len(sizes) - 1 - sizes[::-1].index(there)
    return [*sizes[:at], wanted, *sizes[at + 1 :]]


def rank(sizes: Sizes, found: Sequence[int]) -> Sizes:
    """(number of sizes wanted): the first two and the last ones are kept, small ones go between."""
    wanted = found[0]
    if wanted < len(sizes):
        return sizes[: max(wanted - 1, 1)] + (sizes[-1:] if wanted > 1 else [])
    return [*sizes[:2], *[8] * (wanted - len(sizes)), *sizes[2:]]


def above(sizes: Sizes, found: Sequence[int]) -> Sizes:
    """(highest place that was asked for)."""
    return rank(sizes, [found[0] + 1])


MESSAGES = (
    Message(r"expected input\[1, \d+, \d+, \d+\] to have (\d+) channels, but got", lambda sizes, found: channels(rank(sizes, [4]), found)),
    Message(r"expected input\[.*?\] to have (\d+) channels, but got", channels),
    Message(r"mat1 and mat2 shapes cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)", turned),
    Message(r"normalized_shape=\[(?:\d+, )*(\d+)\], expected input", last),
    Message(r"input\.size\(-1\) must be equal to input_size\. Expected (\d+), got (\d+)", lambda sizes, found: turned(sizes, found[::-1])),
    Message(r"running_mean should contain \d+ elements not (\d+)", channels),
    Message(r"was expecting embedding dimension of (\d+)", last),
    Message(r"not enough values to unpack \(expected (\d+), got \d+\)", rank),
    Message(r"too many values to unpack \(expected (\d+)\)", rank),
    Message(r"[Ee]xpected (?:\dD (?:\(unbatched\) )?or )?(\d)D\b", rank),
    Message(r"Dimension out of range \(expected to be in range of .* but got (\d+)\)", above),
    Message(r"too many indices for tensor of dimension (\d+)", above),
)
NOT_FINITE = "the result is not finite"


def adapted(text: str, error: str) -> str:
    """The text of the main input with the sizes that an error asks for, or without negative numbers; "" where it asks for nothing new."""
    if error == NOT_FINITE:
        return text.replace("randn(", "rand(") if "randn(" in text else ""
    place = SHAPE.match(text)
    for message in MESSAGES if place else ():
        if place and (found := re.search(message.pattern, error)):
            sizes = [int(size) for size in place[2].split(",")]
            wanted = message.sizes(sizes, [int(number) for number in found.groups()])
            made = f"{place[1]}{', '.join(map(str, wanted))}){text[place.end() :]}"
            return made if wanted != sizes and len(wanted) <= 6 else ""
    return ""
