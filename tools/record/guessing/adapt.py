"""Reads the expected shape from the message of an error: torch's own, einops', and Python's when a shape is unpacked.

Each function takes the sizes of an input and the numbers in the message, and returns new sizes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

Sizes = list[int]


class Message(NamedTuple):
    """An error whose text has this pattern → the sizes of the input that it asks for, by the numbers in it."""

    pattern: str
    sizes: Callable[[Sizes, Sequence[int]], Sizes]


def set_channels(sizes: Sizes, numbers: Sequence[int]) -> Sizes:
    """Set dimension 1 to the number of channels."""
    return [*sizes[:1], numbers[0], *sizes[2:]]


def set_last_size(sizes: Sizes, numbers: Sequence[int]) -> Sizes:
    """Set the last dimension."""
    return [*sizes[:-1], numbers[0]]


def replace_size(sizes: Sizes, numbers: Sequence[int]) -> Sizes:
    """Replace an actual size by an expected one; `numbers` are (actual, expected).

    The last dimension is replaced where it has the actual size. Otherwise the module moved another
    dimension there (a transpose), which is recognised by its size.
    """
    there, expected = numbers
    if sizes[-1] == there or there not in sizes[1:]:
        return set_last_size(sizes, [expected])
    at = len(sizes) - 1 - sizes[::-1].index(there)
    return [*sizes[:at], expected, *sizes[at + 1 :]]


def set_rank(sizes: Sizes, numbers: Sequence[int]) -> Sizes:
    """Change the rank. Leading and trailing sizes stay; added dimensions in the middle have size 8."""
    length = numbers[0]
    if length < len(sizes):
        return sizes[: max(length - 1, 1)] + (sizes[-1:] if length > 1 else [])
    return [*sizes[:2], *[8] * (length - len(sizes)), *sizes[2:]]


def extend_rank(sizes: Sizes, numbers: Sequence[int]) -> Sizes:
    """Make the rank large enough for this dimension's index."""
    return set_rank(sizes, [numbers[0] + 1])


def reduce_rank(sizes: Sizes, numbers: Sequence[int]) -> Sizes:
    """Make the rank smaller by what a tensor had more dimensions than it was expanded to; `numbers` are (wanted, actual)."""
    wanted, actual = numbers
    return set_rank(sizes, [max(len(sizes) - (actual - wanted), 1)])


MESSAGES = (
    Message(
        r"expected input\[1, \d+, \d+, \d+\] to have (\d+) channels, but got",
        lambda sizes, found: set_channels(set_rank(sizes, [4]), found),
    ),
    Message(r"expected input\[.*?\] to have (\d+) channels, but got", set_channels),
    Message(r"mat1 and mat2 shapes cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)", replace_size),
    Message(r"normalized_shape=\[(?:\d+, )*(\d+)\], expected input", set_last_size),
    Message(
        r"input\.size\(-1\) must be equal to input_size\. Expected (\d+), got (\d+)", lambda sizes, found: replace_size(sizes, found[::-1])
    ),
    Message(r"input has inconsistent input_size: got (\d+), expected (\d+)", replace_size),
    Message(r"running_mean should contain \d+ elements not (\d+)", set_channels),
    Message(r"was expecting embedding dimension of (\d+)", set_last_size),
    Message(r"number of subscripts in the equation \((\d+)\) does not match the number of dimensions", set_rank),
    Message(
        r"has size (\d+) for operand \d+ which does not broadcast with previously seen size (\d+)",
        lambda sizes, found: replace_size(sizes, found[::-1]),
    ),
    Message(r"can't divide axis of length (\d+) in chunks of (\d+)", replace_size),
    Message(r"not enough values to unpack \(expected (\d+), got \d+\)", set_rank),
    Message(r"too many values to unpack \(expected (\d+)\)", set_rank),
    Message(r"[Ee]xpected (\d) dims", set_rank),
    Message(r"[Ee]xpected (?:\dD (?:\(unbatched\) )?or )?(\d)D\b", set_rank),
    Message(r"expected (\d)D", set_rank),
    Message(r"Dimension out of range \(expected to be in range of .* but got (\d+)\)", extend_rank),
    Message(
        r"number of sizes provided \((\d+)\) must be greater or equal to the number of dimensions in the tensor \((\d+)\)", reduce_rank
    ),
    Message(r"too many indices for tensor of dimension (\d+)", extend_rank),
)


def adapted_shape(shape: Sequence[int], error: str) -> tuple[int, ...]:
    """The sizes that an error asks for; () where it asks for nothing new."""
    for message in MESSAGES if shape else ():
        if match := re.search(message.pattern, error):
            sizes = message.sizes(list(shape), [int(number) for number in match.groups()])
            return tuple(sizes) if sizes != list(shape) and len(sizes) <= 6 and 0 not in sizes else ()
    return ()
