"""Arrays by what does not change when axes are moved: their lengths of axes, their sum, and the sum of their squares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

NEAR = 1e-7
"""Largest difference of two equal arrays' sums, as a share of the norm times the root of the size."""


def fingerprint(array: Any) -> list[Any]:
    """Sorted lengths of axes, sum and sum of squares, as plain data."""
    values = np.asarray(array, np.float64)
    return [sorted(int(n) for n in values.shape), float(values.sum()), float((values**2).sum())]


def is_among(one: Sequence[Any], others: Iterable[Sequence[Any]]) -> bool:
    """Whether an array is one of others, their axes aside."""
    size = max(1, int(np.prod(one[0])))
    scale = float(np.sqrt(max(one[2], 0.0)))

    def same(other: Sequence[Any]) -> bool:
        near = abs(one[1] - other[1]) <= NEAR * scale * float(np.sqrt(size)) + 1e-300
        return list(one[0]) == list(other[0]) and near and abs(one[2] - other[2]) <= NEAR * one[2] + 1e-300

    return any(map(same, others))
