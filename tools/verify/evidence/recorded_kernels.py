"""Compares replacements of kernels with the kernels' recorded calls (`KernelCall`), outside of the sandbox.

A recording is no float64 reference: a kernel on a GPU may round its products to fewer bits (TF32 has
ten). An error between the limit of the dtype and that rounding is neither right nor wrong.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.harness.common import tensor_files, tolerances, trees
from migrate_agent.tools.harness.common.compare_arrays import pattern_problem, rms
from migrate_agent.tools.scan.visible import visible_from
from migrate_agent.tools.types import Inventory, Job, KernelCall, Limits, SourceFile, Unit, Verdict
from migrate_agent.tools.verify.contract.scenario import EXHAUSTED
from migrate_agent.tools.verify.evidence.parsed_source import closure

STAGE, CHECK = "numeric", "recorded_kernels"
ENTRY = "migrate_agent.tools.verify.candidate.recorded_kernels:run"


def function_name(call: KernelCall) -> str:
    """The function's name in the rewrite: `Class.apply` of a `torch.autograd.Function`, else the same name."""
    owner, _, last = call.name.rpartition(".")
    return f"{owner}.apply" if owner and last == "forward" else call.name


def judge(
    calls: Sequence[KernelCall], unit: Unit, inventory: Inventory, candidate: Path, sandbox: Sandbox, job_limits: Limits
) -> Verdict | None:
    """The worst of the calls whose functions stand in files that the candidate's unit imports, its own among them; `None` where there is none.

    `unverified` where an error may be the kernel's own rounding. Of calls that changed an argument in place nothing is judged.
    """
    inventory = visible_from(inventory, unit.source)
    targets = {file.path: file for file in inventory.files}
    defined = _defined(unit, targets, candidate) if calls else {}
    judgeable = [call for call in calls if not call.changed and call.source in targets]
    mine = [call for call in judgeable if call.name.partition(".")[0] in defined.get(targets[call.source].target, ())]
    verdicts = [
        _judged(call, answer)
        for root in dict.fromkeys(targets[call.source].import_root for call in mine)
        for chosen in [[call for call in mine if targets[call.source].import_root == root]]
        for call, answer in zip(chosen, _answers(chosen, inventory, candidate / root, sandbox, job_limits), strict=True)
    ]
    order = ("fail", "unverified", "pass")
    return min(verdicts, key=lambda verdict: (order.index(verdict.status), -(verdict.measured or 0.0)), default=None)


def _defined(unit: Unit, targets: Mapping[str, SourceFile], candidate: Path) -> dict[str, set[str]]:
    """Functions and classes of each file that the unit's rewrite imports. What does not parse is for other checks to refuse."""
    definitions = (ast.FunctionDef, ast.ClassDef)
    sources = closure(candidate, unit.target, (targets[unit.source].import_root,))
    return {source.path: {node.name for node in source.tree.body if isinstance(node, definitions)} for source in sources}


def _answers(
    calls: Sequence[KernelCall], inventory: Inventory, root: Path, sandbox: Sandbox, job_limits: Limits
) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """For each call the row of the job's result and its arrays."""
    modules = {file.path: file.target_module for file in inventory.files}
    rows = [{"module": modules[call.source], "name": function_name(call), "arguments": call.arguments} for call in calls]
    renamed = {file.module: file.target_module for file in inventory.files}
    inputs = {f"tensors{index}": call.tensors for index, call in enumerate(calls) if call.tensors is not None}
    run = sandbox.run(Job("candidate", ENTRY, root, {"calls": rows, "renamed": renamed}, inputs, job_limits))
    try:
        results = run.result if run.status == "ok" and isinstance(run.result, list) and len(run.result) == len(calls) else None
        if results is None:
            kind = "unknown" if run.status in (*EXHAUSTED, "lost") else "error"
            return [({kind: run.error or run.status}, {})] * len(calls)
        return [(row, _held(run.output / f"{index}.safetensors")) for index, row in enumerate(results)]
    finally:
        sandbox.release(run)


def _held(path: Path) -> Mapping[str, Any]:
    try:
        return tensor_files.load(path)
    except (OSError, ValueError):
        return {}


def _judged(call: KernelCall, answer: tuple[Mapping[str, Any], Mapping[str, Any]]) -> Verdict:
    row, actual = answer
    name = function_name(call)
    if "unknown" in row:
        return Verdict(STAGE, CHECK, "unverified", detail=f"{name} on its recorded arguments: {row['unknown']}"[:500])
    if "error" in row:
        return Verdict(STAGE, CHECK, "fail", detail=f"{name} on its recorded arguments: {row['error']}"[:500])
    stored = tensor_files.load(call.tensors) if call.tensors is not None else {}
    try:
        problem, measured, (equal_limit, wrong) = differences(call.result, stored, row["tree"], actual)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as error:  # whatever the job may have written
        return Verdict(STAGE, CHECK, "fail", detail=f"{name}: its result cannot be read: {type(error).__name__}")
    if problem:
        return Verdict(STAGE, CHECK, "fail", detail=f"{name} does not give what its kernel gave: {problem}")
    if measured <= equal_limit:
        return Verdict(STAGE, CHECK, "pass", measured, equal_limit, f"{name} gives what its kernel gave where it was recorded")
    if measured > wrong:
        return Verdict(STAGE, CHECK, "fail", measured, equal_limit, f"{name} does not give what its kernel gave where it was recorded")
    detail = f"{name} differs from what its kernel gave by no more than a GPU's rounding of products might"
    return Verdict(STAGE, CHECK, "unverified", measured, equal_limit, detail)


def differences(
    expected: Mapping[str, Any], stored: Mapping[str, Any], tree: Mapping[str, Any], actual: Mapping[str, Any]
) -> tuple[str, float, tuple[float, float]]:
    """A message where the results cannot be compared; else the error that is largest in units of its limits, and these limits.

    `stored` has the recorded arrays as `out/0`, …; `actual` those of the replacement as `0`, ….
    """
    if trees.skeleton(dict(expected)) != trees.skeleton(dict(tree)):
        return "a result of another form", float("inf"), (0.0, 0.0)
    worst = (0.0, 0.0, tolerances.RECORDED["float32"])
    for index, (theirs, ours) in enumerate(zip(trees.items(dict(expected)), trees.items(dict(tree)), strict=True)):
        truth = np.asarray(stored[f"out/{theirs.number}"] if isinstance(theirs, trees.Leaf) else theirs)
        mine = np.asarray(actual[str(ours.number)] if isinstance(ours, trees.Leaf) else ours)
        name = str(truth.dtype)
        bounds = tolerances.RECORDED.get(name, tolerances.RECORDED["float32"])
        floating = name in tolerances.RECORDED or truth.dtype.kind == "f"
        if floating:
            truth, mine = truth.astype(np.float64), mine.astype(np.float64)
        if problem := pattern_problem(truth, mine):
            return f"result {index}: {problem}", float("inf"), bounds
        if not floating and (truth != mine).any():
            return f"result {index}: {float(np.mean(truth != mine)):.2%} of the elements differ", float("inf"), bounds
        error = _error(truth, mine) if floating else 0.0
        worst = max(worst, (error / bounds[0], error, bounds))
    return "", worst[1], worst[2]


def _error(truth: Any, mine: Any) -> float:
    finite = np.isfinite(truth)
    return rms(np.where(finite, mine, 0) - np.where(finite, truth, 0)) / (rms(truth) or 1.0)
