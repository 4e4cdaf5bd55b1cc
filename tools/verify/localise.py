"""Names the first submodule that diverges: its inputs agree on both sides, and its outputs do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from migrate_agent.tools.types import Job, Run
from migrate_agent.tools.verify import arrays, limits
from migrate_agent.tools.verify.compare import compare
from migrate_agent.tools.verify.results import SIDE, OriginalFailed, Results, Scenario, discard, texts
from migrate_agent.tools.verify.sampling import Array


@dataclass(frozen=True)
class Record:
    """One call of a submodule."""

    path: str
    kind: str
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]


def first_divergence(results: Results, scenario: Scenario) -> str:
    """Words for a verdict's detail, such as ``first differs in h.0.ln_1 (LayerNorm)``; empty where it cannot be told."""
    try:
        theirs = _run(results, _original_job(results, scenario))
        ours = _run(results, results.candidate_job("capture", [scenario.facts]))
    except (OriginalFailed, OSError, ValueError, KeyError):
        return ""
    culprit = find(theirs, ours)
    return f"first differs in {culprit.path or 'the unit itself'} ({culprit.kind})" if culprit else ""


def find(theirs: Sequence[Record], ours: Sequence[Record]) -> Record | None:
    """The first of their calls, in order of completion, that got equal inputs and gave other outputs.

    Calls are matched by path and count; submodules without counterpart (plain functions on the other side) do not take part.
    """
    waiting: dict[str, list[Record]] = {}
    for record in ours:
        waiting.setdefault(record.path, []).append(record)
    diverging = None
    for record in theirs:
        queue = waiting.get(record.path)
        if not queue:
            continue
        match = queue.pop(0)
        if _agree(record.outputs, match.outputs):
            continue
        if _agree(record.inputs, match.inputs) or len(record.inputs) != len(match.inputs):
            return record
        diverging = diverging or record
    return diverging


def _agree(theirs: Sequence[Array], ours: Sequence[Array]) -> bool:
    floor = limits.FLOOR_FP64 * limits.NOISE_FACTOR
    return len(theirs) == len(ours) and not any(
        compare("", their, our, (0.0, 0.0), floor).failed for their, our in zip(theirs, ours, strict=True)
    )


def _original_job(results: Results, scenario: Scenario) -> Job:
    example = results.examples[results.expected.examples[scenario.facts["example"]]["index"]]
    arguments: Mapping[str, Any] = {
        "module": results.file.module,
        "name": results.unit.name,
        "example": texts(example),
        "scenario": {key: scenario.facts[key] for key in ("name", "state", "mode")},
    }
    inputs = {"given": results.expected.given, **({"tensors": example.tensors} if example.tensors else {})}
    root = results.original_root / results.file.import_root
    return Job("original", f"{SIDE}.torch_capture:capture", root, arguments, inputs, results.job_limits)


def _run(results: Results, job: Job) -> list[Record]:
    run: Run = results.sandbox.run(job)
    try:
        if run.status != "ok":
            raise OriginalFailed(run.error)
        found = arrays.load(run.output / "captured.safetensors")
        return [_record(number, row, found) for number, row in enumerate(run.result)]
    finally:
        discard(results.sandbox, run)


def _record(number: int, row: Mapping[str, Any], found: Mapping[str, Array]) -> Record:
    ins = tuple(found[f"{number}/in/{index}"] for index in range(row["inputs"]))
    return Record(str(row["path"]), str(row["type"]), ins, tuple(found[f"{number}/out/{index}"] for index in range(row["outputs"])))
