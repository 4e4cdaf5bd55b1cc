"""Arrays by what does not change when axes are moved: their lengths of axes, their sum, the sum of their squares, and how many numbers of them are
not finite, as in a mask of `-inf`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

NEAR = 1e-7
"""Largest difference of two equal arrays' sums, as a share of the norm times the root of the size."""


def fingerprint(array: Any) -> list[Any]:
    """Sorted lengths of axes, sum and sum of squares of what is finite, and the counts of NaN, inf and -inf, as plain data."""
    values = np.asarray(array, np.float64)
    finite = np.where(np.isfinite(values), values, 0.0)
    others = [int(np.isnan(values).sum()), int(np.isposinf(values).sum()), int(np.isneginf(values).sum())]
    return [sorted(int(n) for n in values.shape), float(finite.sum()), float((finite**2).sum()), others]


def is_among(one: Sequence[Any], others: Iterable[Sequence[Any]]) -> bool:
    """Whether an array is one of others, their axes aside."""
    size = max(1, int(np.prod(one[0])))
    scale = float(np.sqrt(max(one[2], 0.0)))

    def same(other: Sequence[Any]) -> bool:
        near = abs(one[1] - other[1]) <= NEAR * scale * float(np.sqrt(size)) + 1e-300
        return (
            list(one[0]) == list(other[0]) and list(one[3]) == list(other[3]) and near and abs(one[2] - other[2]) <= NEAR * one[2] + 1e-300
        )

    return any(map(same, others))
