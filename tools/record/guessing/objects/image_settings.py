"""Sizes of images that a repository's settings name: `--img_size 94 24`, `imgH` and `imgW`. Networks with fixed windows take no others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from migrate_agent.tools.record.guessing.rows import IMAGE_SIZE
from migrate_agent.tools.record.guessing.values import Tensor

HEIGHT = re.compile(r"(image|img|input|crop)_?(h|height)")
WIDTH = re.compile(r"(image|img|input|crop)_?(w|width)")
SIZE = re.compile(rf"{IMAGE_SIZE.pattern}|crop_?size")
LARGEST = 512
MOST_SIZES = 4
MOST_CHANNELS = 4
"""Of a picture; features have more."""


def image_sizes(tables: Sequence[Mapping[str, Any]]) -> tuple[tuple[int, int], ...]:
    """The heights and widths that tables of settings name, each pair also the other way round: `[94, 24]` may begin with either."""
    sizes = dict.fromkeys(size for table in tables for size in _named(table))
    return tuple(sizes)[:MOST_SIZES]


def _named(table: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    heights = [value for name, value in table.items() if HEIGHT.fullmatch(name.lower())]
    widths = [value for name, value in table.items() if WIDTH.fullmatch(name.lower())]
    named = [value for name, value in table.items() if SIZE.fullmatch(name.lower())]
    for value in (*zip(heights, widths, strict=False), *named):
        pair = (value, value) if type(value) is int else tuple(value)[-2:] if isinstance(value, (list, tuple)) else ()
        if len(pair) == 2 and all(type(size) is int and 0 < size <= LARGEST for size in pair):
            yield (pair[0], pair[1])
            yield (pair[1], pair[0])


def with_images_of_settings(tables: Sequence[Mapping[str, Any]], mains: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The inputs that a call may begin with, and before the first image among them that image in the sizes of the settings; behind it where it is the very
    first. What inner layers take, features, is no image."""
    images = [tensor for tensor in mains if len(tensor.shape) == 4 and tensor.kind == "normal"]
    image = next((tensor for tensor in images if tensor == mains[0] or tensor.shape[1] <= MOST_CHANNELS), None)
    if image is None:
        return tuple(mains)
    at = max(mains.index(image), 1)
    return (*mains[:at], *(Tensor((*image.shape[:2], *size)) for size in image_sizes(tables)), *mains[at:])
