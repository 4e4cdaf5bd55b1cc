"""How far two sides may be apart because of their seeds alone."""

from __future__ import annotations

import math

import numpy as np

from migrate_agent.tools.compare.log import Array

CONFIDENCE = 0.95


def margin(a: Array, b: Array, noise: float | None) -> float | None:
    """Half the width of the 95 % confidence interval of the relative difference of the means of `a` and `b`, one value for each run.

    `noise` is the relative standard deviation between runs where it is known. Else it is estimated from the runs with Student's t and pooled variance
    (https://www.itl.nist.gov/div898/handbook/prc/section3/prc31.htm), and None where each side has one run.
    """
    from scipy import stats  # type: ignore[import-untyped]

    spread = math.sqrt(1 / len(a) + 1 / len(b))
    if noise is not None:
        return float(stats.norm.ppf((1 + CONFIDENCE) / 2)) * noise * spread
    degrees = len(a) + len(b) - 2
    scale = abs(float(np.mean(a)))
    if degrees < 1 or scale == 0:
        return None
    squares = sum(float(np.sum((side - np.mean(side)) ** 2)) for side in (a, b))
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, degrees)) * math.sqrt(squares / degrees) * spread / scale


def share_bounds(failures: int, requests: int) -> tuple[float, float]:
    """Clopper and Pearson's 95 % bounds of a share, each one-sided (https://www.itl.nist.gov/div898/handbook/prc/section2/prc241.htm)."""
    from scipy import stats

    lower = float(stats.beta.ppf(1 - CONFIDENCE, failures, requests - failures + 1)) if failures else 0.0
    upper = float(stats.beta.ppf(CONFIDENCE, failures + 1, requests - failures)) if failures < requests else 1.0
    return lower, upper
