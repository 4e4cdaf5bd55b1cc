"""Buffers after the steps of a training curve agree in float64: effects of several calls, such as a pointer that wraps around."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

from migrate_agent.tools.harness.common import budgets, tolerances
from migrate_agent.tools.harness.common.compare_arrays import Difference, compare, rms, verdict
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.checks.behavioural.curves import comparable, settled
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict | None:
    """Within the floor, or 64 times the change of torch's own buffers by rounding noise. Buffers that noise changes beyond the cap do not count."""
    if not results.expected.trained or not comparable(results):
        return None
    plain, noise = verdict("behavioural", "curves_buffers", _differences(results, {})), results.expected.noise
    # Noise only excuses: a pass without it is a pass, and its runs are saved.
    if plain is None or plain.status == "pass" or noise is None:
        return plain
    return verdict("behavioural", "curves_buffers", _differences(results, noise.of_buffers)) if settled(results) else None


def _differences(results: Results, noisy: Mapping[str, Array]) -> Iterator[Difference]:
    """The error of each buffer, without those that noise changes beyond the cap."""
    ours = results.of("exact").arrays.get("trained", {})
    for name, expected in results.expected.trained.items():
        if name in results.omitted:
            continue
        noise = _noise(expected, noisy[name]) if name in noisy else (0.0, 0.0)
        if noise is None:
            continue
        if f"state/{name}" not in ours:
            yield Difference(name, float("inf"), 0.0, "the candidate gave none")
        else:
            noise_of_buffer = partial(tuple[float, float], noise)
            yield compare(
                f"{name} after {budgets.STEPS + 1} calls",
                expected,
                ours[f"state/{name}"],
                noise_of_buffer,
                tolerances.FLOOR_GRADIENT_FP64,
            )


def _noise(expected: Array, noisy: Array) -> tuple[float, float] | None:
    """The RMS and the largest change by noise; None where noise changes the buffer beyond the cap."""
    if expected.dtype.kind not in "fc" or not expected.size:
        return (0.0, 0.0) if np.array_equal(expected, noisy) else None
    apart = np.abs(np.where(np.isfinite(expected), noisy - expected, 0))
    noise = rms(apart), float(apart.max())
    return noise if tolerances.NOISE_FACTOR * noise[0] <= tolerances.CAP_FP64 * rms(expected) else None


CHECK = Check("behavioural", "curves_buffers", judge)
