"""PyTorch's own operator database (`op_db`): each sample written as source, rewritten, run in JAX, and compared in double precision."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from migrate_agent.evals.mirror import Source, load_mirror, rewrite
from migrate_agent.evals.op_run import body, check
from migrate_agent.evals.op_source import Call, Unspelled, calls, excluded, full_name
from migrate_agent.evals.parity import set_up_jax
from migrate_agent.evals.suite import Group, Options, Outcome, Status, Suite
from migrate_agent.evals.tidiness import untidy

GROUP = 12
"""Entries that one process rewrites and runs: enough to share the start, few enough to bound what a crash costs."""


@cache
def entries() -> dict[str, Any]:
    """Name and variant → entry. PyTorch builds its database when it is imported, in about ten seconds."""
    from torch.testing._internal.common_methods_invocations import op_db

    return {full_name(entry): entry for entry in op_db}


def groups(options: Options) -> Sequence[Group]:
    """Neighbouring entries together: they share what is compiled."""
    wanted = [name for name in entries() if options.wanted(name)]
    return [tuple(wanted[start : start + GROUP]) for start in range(0, len(wanted), GROUP)]


def run(group: Group, options: Options) -> Iterator[Outcome]:
    """Judge these entries: `right` means every sample, in every spelling, forward and gradient."""
    torch.set_default_dtype(torch.float64)
    set_up_jax()
    problems: dict[str, list[tuple[Status, str]]] = {name: [] for name in group}
    written: list[Call] = []
    for name in group:
        if excluded(entries()[name]):
            continue
        for call in calls(entries()[name], options.samples):
            if isinstance(call, Unspelled):
                problems[name].append(("refused", f"not written: {call}"))
            else:
                written.append(call)
    static = _judge(written, problems) if written else []
    tried = Counter(call.entry for call in written)
    for name in group:
        yield _outcome(name, problems[name], tried[name])
    if static:
        yield Outcome(f"static check of {group[0]} … {group[-1]}", "wrong", "; ".join(static[:5])[:500])


def _judge(written: list[Call], problems: dict[str, list[tuple[Status, str]]]) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="migrate-agent-") as folder:
        holes, draft = rewrite([Source(call.function(f"f{index}"), call.names) for index, call in enumerate(written)], Path(folder))
        mirror = load_mirror(Path(folder))
        judged: dict[Any, str] = {}
        for index, (call, hole) in enumerate(zip(written, holes, strict=True)):
            text = f"{call.spelling}, {call.dtype}: {call.body.strip()} {[tuple(tensor.shape) for tensor in call.tensors]}"
            if hole:
                problems[call.entry].append(("refused", f"{hole} | {text}"))
                continue
            function = getattr(mirror, f"f{index}")
            key = (body(function), *map(id, call.tensors))  # spellings of one sample often become the same code
            if key not in judged:
                judged[key] = _problem(call, function)
            if judged[key]:
                problems[call.entry].append(("wrong", f"{judged[key]} | {text}"))
    return [] if any(holes) else untidy(draft.files)


def _problem(call: Call, function: Any) -> str:
    """What is wrong with a rewritten call, or nothing."""
    try:
        check(call, function)
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return ""


def _outcome(name: str, problems: list[tuple[Status, str]], tried: int) -> Outcome:
    if reason := excluded(entries()[name]):
        return Outcome(name, "excluded", reason)
    if not tried and not problems:
        return Outcome(name, "excluded", "the entry has no sample for the CPU in float64, int64, bool, float32 or bfloat16")
    details = {"calls": tried, "failed": len(problems), "reasons": [reason for _, reason in problems[:8]]}
    if not problems:
        return Outcome(name, "right", "", {"calls": tried})
    status: Status = "wrong" if any(status == "wrong" for status, _ in problems) else "refused"
    return Outcome(name, status, next(reason for kind, reason in problems if kind == status)[:500], details)


def versions(outcomes: object) -> dict[str, str]:
    """What the suite was measured on."""
    return {package: version(package) for package in ("torch", "jax", "flax", "numpy")}


OPS = Suite("ops", "Operators (PyTorch's `op_db`)", "operators", groups, run, 300.0, versions)
