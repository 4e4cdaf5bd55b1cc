"""Names the first submodule that diverges: its inputs agree on both sides, and its outputs do not. For gradients, the other way round."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from migrate_agent.tools.harness.common import budgets, tensor_files, tolerances
from migrate_agent.tools.harness.common.compare_arrays import compare, quiet
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.types import Job, Run, Verdict
from migrate_agent.tools.verify.checks.shared.outputs import named_differences
from migrate_agent.tools.verify.contract.jobs import discard
from migrate_agent.tools.verify.contract.scenario import OriginalFailed, Role, Scenario
from migrate_agent.tools.verify.evidence.candidate import NATIVE, Results

MOST_BYTES = 2**24
"""What one scenario's calls may take to be kept."""
NATIVE_CHECKS = ("forward_fp32", "forward_bf16", "nonfinite")


@dataclass(frozen=True)
class Record:
    """One call of a submodule: arrays that went in and came out, or the gradients with respect to them."""

    path: str
    kind: str
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    dtypes: tuple[str, ...] = ()


class Culprit(NamedTuple):
    """A submodule, by its path ("" for the unit itself) and class (empty where it is known by its state alone)."""

    path: str
    kind: str = ""

    def sentence(self) -> str:
        """``first differs in h.0.ln_1 (LayerNorm)``."""
        return f"first differs in {self.path or 'the unit itself'}" + (f" ({self.kind})" if self.kind else "")


def first_divergence(results: Results, scenario: Scenario, verdict: Verdict) -> Culprit | None:
    """The submodule that diverges first in the scenario of a failed verdict; None where it cannot be located."""
    if verdict.leaf.startswith(("state/", "left/", "held/")):
        return Culprit(verdict.leaf.partition("/")[2].rpartition(".")[0])
    capture = how_to_capture(verdict)
    try:
        theirs, ours = captured(results, scenario, capture)
        wrong = _wrong_parameters(results, scenario) if capture == "gradients" else ()
    except (OriginalFailed, OSError, ValueError, KeyError):
        return None  # safe: the verdict stands, and only lacks a place
    for limit in tolerances.SAME_CALL["narrow" if capture == "native" and scenario.narrow else capture]:
        culprit = find_backward(theirs, ours, limit, wrong) if capture == "gradients" else find(theirs, ours, limit)
        if culprit is not None:
            return Culprit(culprit.path, culprit.kind)
    return None  # safe: the verdict stands; all calls agree where the difference is in plain functions between them


def how_to_capture(verdict: Verdict) -> str:
    """What shows a failure best: `values` in float64, `native` ones, or `gradients`."""
    return "gradients" if "grad/" in verdict.leaf else "native" if verdict.check in NATIVE_CHECKS else "values"


def captured(results: Results, scenario: Scenario, capture: str) -> tuple[list[Record], list[Record]]:
    """The calls of submodules on both sides. Raises `OriginalFailed` where either side does not get through."""
    return _of_original(results, scenario, capture), _run(results, results.candidate_job("capture", [scenario], {"how": capture}))


def _of_original(results: Results, scenario: Scenario, capture: str) -> list[Record]:
    """The original's calls: those of its own scenarios are kept beside its results, for further attempts."""
    key, stored = (scenario.name, capture), results.expected.captured
    # An input that the search found belongs to one candidate, and no further attempt meets it again.
    if not any(scenario is own for own in results.expected.scenarios):
        return _run(results, _original_job(results, scenario, capture))
    if key not in stored:
        records = _run(results, _original_job(results, scenario, capture))
        if sum(value.nbytes for record in records for value in (*record.inputs, *record.outputs)) > MOST_BYTES:
            return records
        stored[key] = records
    return list(stored[key])


def matched(theirs: Sequence[Record], ours: Sequence[Record]) -> list[tuple[Record, Record]]:
    """Calls of the same submodule, by path and count; those without counterpart (plain functions on the other side) do not take part."""
    waiting: dict[str, list[Record]] = {}
    for record in ours:
        waiting.setdefault(record.path, []).append(record)
    return [(record, waiting[record.path].pop(0)) for record in theirs if waiting.get(record.path)]


def find(theirs: Sequence[Record], ours: Sequence[Record], limit: float) -> Record | None:
    """The first of their calls, in order of completion, that got equal inputs (up to `limit`) and gave other outputs."""
    diverging = None
    for record, match in matched(theirs, ours):
        if _agree(record.outputs, match.outputs, limit) and _same_dtypes(record.dtypes, match.dtypes):
            continue
        if _agree(record.inputs, match.inputs, limit) or len(record.inputs) != len(match.inputs):
            return record
        diverging = diverging or record
    return diverging


def find_backward(theirs: Sequence[Record], ours: Sequence[Record], limit: float, wrong: Collection[str] = ()) -> Record | None:
    """The first of their calls, in order of completion, that got equal gradients from its outputs and passed on others to its inputs, or to
    parameters of its own (`wrong` names those that got other ones)."""
    pairs = matched(theirs, ours)
    paths = {record.path for record in theirs}
    owners = {max((path for path in paths if not path or name.startswith(f"{path}.")), key=len, default="") for name in wrong}
    diverging = None
    for record, match in pairs:
        inner = _agree(record.inputs, match.inputs, limit) and record.path not in owners
        if inner:
            continue
        if _agree(record.outputs, match.outputs, limit):
            return record
        diverging = record
    return diverging or next((record for record in theirs if record.path in owners), None)


def _same_dtypes(theirs: Sequence[str], ours: Sequence[str]) -> bool:
    return not theirs or not ours or [NATIVE.get(name, name) for name in theirs] == [NATIVE.get(name, name) for name in ours]


def _agree(theirs: Sequence[Array], ours: Sequence[Array], limit: float) -> bool:
    return len(theirs) == len(ours) and not any(
        compare("", their, our, quiet, limit).failed for their, our in zip(theirs, ours, strict=True)
    )


def _wrong_parameters(results: Results, scenario: Scenario) -> list[str]:
    differences = named_differences(results, "grad", Role.GRADIENT, Role.GRADIENT_EDGE, floor=tolerances.FLOOR_GRADIENT_FP64)
    failed = (difference.key for difference in differences if difference.failed and difference.scenario == scenario.name)
    return [key.removeprefix("grad/") for key in failed]


def _original_job(results: Results, scenario: Scenario, capture: str) -> Job:
    called = scenario.request().to_json()
    return results.original_job(
        "capture:capture", scenario, {"seed": budgets.SEED_STRIDE * results.seed, "scenario": called, "how": capture}
    )


def _run(results: Results, job: Job) -> list[Record]:
    run: Run = results.sandbox.run(job)
    try:
        if run.status != "ok":
            raise OriginalFailed(run.error)
        arrays = tensor_files.load(run.output / "captured.safetensors")
        return [_record(row, _taker(arrays, number)) for number, row in enumerate(run.result)]
    finally:
        discard(results.sandbox, run)


def _taker(arrays: Mapping[str, Array], number: int) -> Callable[[str, int], tuple[Array, ...]]:
    def take(kind: str, count: int) -> tuple[Array, ...]:
        return tuple(np.asarray(arrays[f"{number}/{kind}/{index}"]) for index in range(count))

    return take


def _record(row: Mapping[str, Any], take: Callable[[str, int], tuple[Array, ...]]) -> Record:
    dtypes = tuple(str(name) for name in row.get("dtypes", ()))
    return Record(str(row["path"]), str(row["type"]), take("in", row["inputs"]), take("out", row["outputs"]), dtypes)
