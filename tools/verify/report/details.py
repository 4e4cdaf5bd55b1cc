"""What a page about a verification shows beside the verdicts: errors of every compared array, training curves, errors by submodule. Plain data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.harness.common.compare_arrays import Difference
from migrate_agent.tools.verify.checks.shared.outputs import named_differences, output_differences
from migrate_agent.tools.verify.compare.pairs import output_pairs, paired
from migrate_agent.tools.verify.contract.scenario import CandidateFailed, OriginalFailed, Role
from migrate_agent.tools.verify.evidence.candidate import Results
from migrate_agent.tools.verify.report.localise import captured
from migrate_agent.tools.verify.report.replay import Call, judged

BINS = tuple(range(-18, 2))
"""Powers of ten between which elements are counted by their error relative to the array's RMS; smaller ones count in the first."""


def details(results: Results) -> dict[str, Any]:
    """All of it; what could not be had is left empty. Starts two more jobs, for the submodules."""
    page: dict[str, Any] = {"errors": [], "histogram": {}, "curves": {}, "submodules": []}
    try:
        page["errors"] = [_row(difference) for difference in _differences(results)]
        page["histogram"] = {"bins": list(BINS), "exact": _histogram(results, "exact"), "native": _histogram(results, "native")}
        page["curves"] = _curves(results)
        page["submodules"] = [_call(call) for call in _submodules(results)]
    except (OriginalFailed, CandidateFailed, OSError, ValueError, KeyError, IndexError, TypeError, AttributeError):
        pass  # the verdicts say what is wrong
    return page


def _differences(results: Results) -> Iterator[Difference]:
    yield from output_differences(results, Role.SEED, Role.GRADIENT, Role.SHAPE, Role.EDGE)
    yield from named_differences(results, "input-grad", Role.GRADIENT, floor=tolerances.FLOOR_GRADIENT_FP64)
    yield from named_differences(results, "grad", Role.GRADIENT, floor=tolerances.FLOOR_GRADIENT_FP64)
    yield from named_differences(results, "state", Role.SEED, Role.GRADIENT, floor=tolerances.FLOOR_FP64)


def _row(difference: Difference) -> dict[str, Any]:
    measured = difference.measured if math.isfinite(difference.measured) else None
    return {"label": difference.label, "error": measured, "limit": difference.limit, "problem": difference.problem}


def _histogram(results: Results, kind: str) -> list[int]:
    """Elements of the outputs of the seeds, by the power of ten of their relative error."""
    counts = np.zeros(len(BINS), int)
    for scenario, answer in results.answers(Role.SEED, kind=kind):
        # Unpaired draws differ by chance, and would count as errors in the picture.
        if answer.error or not paired(scenario, answer):
            continue
        for pair in output_pairs(scenario, answer):
            if pair.got is None or pair.expected.dtype.kind not in "fc" or pair.expected.shape != pair.got.shape:
                continue
            finite = np.isfinite(pair.expected) & np.isfinite(pair.got)
            size = float(np.sqrt(np.mean(np.abs(pair.expected[finite]) ** 2))) if finite.any() else 0.0
            error = np.abs(pair.got[finite] - pair.expected[finite]) / (size or 1.0)
            powers = np.floor(np.log10(np.maximum(error, 10.0 ** BINS[0])))
            counts += np.bincount(np.clip(powers.astype(int) - BINS[0], 0, len(BINS) - 1), minlength=len(BINS))
    return [int(count) for count in counts]


def _curves(results: Results) -> dict[str, Any]:
    """Losses by optimiser and precision, of torch and of the candidate."""
    theirs = results.described().get("curves")
    if not theirs:
        return {}
    ours: Mapping[str, Any] = {"exact": results.exact.get("curves") or {}, "native": results.native.get("curves") or {}}
    return {
        optimiser: {kind: {"torch": theirs[optimiser][kind], "jax": ours[kind].get(optimiser, [])} for kind in ("exact", "native")}
        for optimiser in ("sgd", "adamw")
        if optimiser in theirs
    }


def _submodules(results: Results) -> tuple[Call, ...]:
    scenario = next(item for item in results.expected.scenarios if item.role == Role.SEED)
    theirs, ours = captured(results, scenario, "values")
    return judged("values", theirs, ours, False).calls


def _call(call: Call) -> dict[str, Any]:
    return {"path": call.path, "kind": call.kind, "into": _finite(call.into), "out": _finite(call.out)}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
