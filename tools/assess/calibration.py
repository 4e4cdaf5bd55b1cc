"""How much of a repository the rules moved by themselves, and how long that took the machine: first looks, so that nothing was tuned to them.

`python -m migrate_agent.evals.bench.assess` prints the rows from `evals/results/`, and with `--error` how far off the estimate of each was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Measured(NamedTuple):
    """One repository or package: units that were tried, those of them that were verified, and the seconds of all on two processor cores."""

    name: str
    units: int
    verified: int
    seconds: float


class Range(NamedTuple):
    """The likely value, and the range in which eight of ten repositories lay."""

    low: float
    likely: float
    high: float

    def times(self, factor: float) -> Range:
        """All three multiplied."""
        return Range(self.low * factor, self.likely * factor, self.high * factor)


class Holdout(NamedTuple):
    """One repository as the others would have estimated it."""

    row: Measured
    share: Range
    seconds: Range


DATE = "2026-11-24"
# rows: python -m migrate_agent.evals.bench.assess
ROWS: tuple[Measured, ...] = (
    Measured("101/bottleneck-transformer-pytorch", 5, 5, 161),
    Measured("101/etsformer-pytorch", 9, 7, 307),
    Measured("101/linformer", 11, 11, 368),
    Measured("101/pyrila", 18, 9, 324),
    Measured("101/torchregularize", 3, 1, 11),
    Measured("101/transformers-from-scratch", 12, 11, 590),
    Measured("101/x-metaformer", 27, 16, 451),
    Measured("102/baytorch", 3, 0, 12),
    Measured("102/brc-pytorch", 5, 4, 108),
    Measured("102/channel-attention", 10, 10, 246),
    Measured("102/dnnpy", 1, 0, 0),
    Measured("102/lie-transformer-pytorch", 12, 3, 59),
    Measured("102/pyautoencoder", 4, 1, 41),
    Measured("102/reformer-lm", 10, 5, 131),
    Measured("102/yaunet", 31, 31, 690),
    Measured("repositories/LTSF-Linear", 34, 10, 175),
    Measured("repositories/Pytorch-UNet", 5, 4, 1176),
    Measured("repositories/Self-Attention-GAN", 5, 2, 395),
    Measured("repositories/TCN", 10, 10, 130),
    Measured("repositories/attention-is-all-you-need-pytorch", 11, 11, 131),
    Measured("repositories/conformer", 16, 16, 211),
    Measured("repositories/pointnet.pytorch", 5, 0, 92),
    Measured("repositories/pygcn", 2, 0, 1),
    Measured("repositories/stargan", 3, 3, 36),
)
# end of the rows
_QUANTILES = (0.1, 0.9)


def verified_share(rows: Sequence[Measured] = ROWS) -> Range:
    """Of the units to rewrite, the part that the rules alone get verified: over all units, and the spread over repositories."""
    low, high = np.quantile([row.verified / row.units for row in rows], _QUANTILES)
    return Range(float(low), sum(row.verified for row in rows) / sum(row.units for row in rows), float(high))


def unit_seconds(rows: Sequence[Measured] = ROWS) -> Range:
    """Seconds of the machine for one unit."""
    low, likely, high = np.quantile([row.seconds / row.units for row in rows], (_QUANTILES[0], 0.5, _QUANTILES[1]))
    return Range(float(low), float(likely), float(high))


def holdouts(rows: Sequence[Measured] = ROWS) -> tuple[Holdout, ...]:
    """Each row, estimated from all others."""
    others = [[other for other in rows if other is not row] for row in rows]
    return tuple(Holdout(row, verified_share(rest), unit_seconds(rest)) for row, rest in zip(rows, others, strict=True))


def error_line() -> str:
    """How wrong the estimates were on repositories that were kept out, for people."""
    rows = holdouts()
    errors = [abs(holdout.row.verified / holdout.row.units - holdout.share.likely) for holdout in rows]
    inside = sum(holdout.share.low <= holdout.row.verified / holdout.row.units <= holdout.share.high for holdout in rows)
    factors = [max(ratio, 1 / ratio) for holdout in rows if (ratio := holdout.row.seconds / holdout.row.units / holdout.seconds.likely) > 0]
    return (
        f"{len(rows)} repositories and packages at first look ({DATE}), each estimated from the others: the verified share was off by "
        f"{100 * float(np.median(errors)):.0f} points (median) and by {100 * max(errors):.0f} (worst), {inside} of {len(rows)} lay in the range; "
        f"the machine's time was off by a factor of {float(np.median(factors)):.1f} (median) and {max(factors):.0f} (worst)"
    )
