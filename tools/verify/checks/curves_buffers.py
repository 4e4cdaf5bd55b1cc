"""Buffers after the steps of a training curve agree in float64: what several calls leave behind, such as a pointer that wraps around."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify import limits
from migrate_agent.tools.verify.check import Check
from migrate_agent.tools.verify.compare import Difference, compare, rms, verdict
from migrate_agent.tools.verify.curve_judge import settled
from migrate_agent.tools.verify.results import Results


def judge(results: Results) -> Verdict | None:
    """Within the floor, or 64 times what rounding noise does to torch's own, up to where noise alone makes others of them."""
    return verdict("behavioural", "curves_buffers", _differences(results)) if results.expected.trained and settled(results) else None


def _differences(results: Results) -> Iterator[Difference]:
    ours, theirs = results.outputs["exact"].get("trained", {}), results.expected.trained
    for key in theirs:
        kind, _, name = key.partition("/")
        if kind != "exact" or name in results.omitted:
            continue
        expected, noisy = theirs[key], theirs[f"noisy/{name}"]
        noise = (0.0, 0.0)
        if expected.dtype.kind in "fc" and expected.size:
            apart = np.abs(np.where(np.isfinite(expected), noisy - expected, 0))
            noise = rms(apart), float(apart.max())
            if not limits.NOISE_FACTOR * noise[0] <= limits.CAP_FP64 * rms(expected):
                continue
        elif not np.array_equal(expected, noisy):
            continue
        if f"state/{name}" not in ours:
            yield Difference(name, float("inf"), 0.0, "the candidate gave none")
        else:
            yield compare(f"{name} after {limits.STEPS + 1} calls", expected, ours[f"state/{name}"], noise, limits.FLOOR_GRADIENT_FP64)


CHECK = Check("behavioural", "curves_buffers", judge)
