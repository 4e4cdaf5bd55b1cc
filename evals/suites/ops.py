"""PyTorch's own operator database (`op_db`): each sample written as source, rewritten, run in JAX, and compared in double precision."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any

import jax
import torch

from migrate_agent.evals.operators.mirror import Source, load_mirror, rewrite
from migrate_agent.evals.operators.op_run import body
from migrate_agent.evals.operators.op_run import problems as run_together
from migrate_agent.evals.operators.op_source import Call, Unspelled, calls, dtypes, excluded, full_name, inputs, share
from migrate_agent.evals.operators.parity import set_up_jax
from migrate_agent.evals.suite import Group, Options, Outcome, Status, Suite
from migrate_agent.evals.zoo_packages.tidiness import static_problems

GROUP = 32
"""Entries that one process judges."""
CHUNK = 8
"""Entries that are rewritten as one file, and reported one by one."""
BATCH = 24
"""Calls that are compiled together."""


@cache
def entries() -> dict[str, Any]:
    """Name and variant → entry. PyTorch builds its database when it is imported, in about ten seconds."""
    from torch.testing._internal.common_methods_invocations import op_db

    return {full_name(entry): entry for entry in op_db}


def groups(options: Options) -> Sequence[Group]:
    """Neighbouring entries together: they share what is compiled."""
    names = [name for name in entries() if options.wanted(name)]
    return [tuple(names[start : start + GROUP]) for start in range(0, len(names), GROUP)]


def run(group: Group, options: Options) -> Iterator[Outcome]:
    """Judge these entries: `right` means every sample, in every spelling, forward and gradient."""
    torch.set_default_dtype(torch.float64)
    set_up_jax()
    for start in range(0, len(group), CHUNK):
        yield from _chunk(group[start : start + CHUNK], options)
        jax.clear_caches()  # type: ignore[no-untyped-call]


def _chunk(names: Sequence[str], options: Options) -> Iterator[Outcome]:
    problems: dict[str, list[tuple[Status, str]]] = {name: [] for name in names}
    written: dict[str, list[Call]] = {name: [] for name in names}
    for name in names:
        for call in () if excluded(entries()[name]) else calls(entries()[name], options.samples):
            if isinstance(call, Unspelled):
                problems[name].append(("refused", f"not written: {call}"))
            else:
                written[name].append(call)
    every = [call for name in names for call in written[name]]
    with tempfile.TemporaryDirectory(prefix="migrate-agent-") as folder:
        holes, draft = rewrite([Source(call.function(f"f{index}"), call.names) for index, call in enumerate(every)], Path(folder))
        mirror = load_mirror(Path(folder)) if every else None
        number = count()
        for name in names:
            functions = [(call, holes[i], getattr(mirror, f"f{i}", None)) for call, i in zip(written[name], number, strict=False)]
            problems[name] += _judge(functions)
            yield _outcome(name, problems[name], written[name], options)
    if static := [] if any(holes) else static_problems(draft.files):
        yield Outcome(f"static check of {names[0]} … {names[-1]}", "untidy", "; ".join(static[:5])[:500])


def _judge(functions: Sequence[tuple[Call, str, Any]]) -> Iterator[tuple[Status, str]]:
    """The problems of one entry's calls. Spellings of one sample often become the same code, which is run once."""
    first: dict[Any, int] = {}
    messages: dict[int, str] = {}
    for index, (call, hole, function) in enumerate(functions):
        if not hole:
            first.setdefault((body(function), *map(id, call.tensors)), index)
    distinct = list(first.values())
    for start in range(0, len(distinct), BATCH):
        batch = distinct[start : start + BATCH]
        messages |= zip(batch, run_together([(functions[i][0], functions[i][2]) for i in batch]), strict=True)
    for call, hole, function in functions:
        text = f"{call.spelling}, {call.dtype}: {call.body.strip()} {[tuple(tensor.shape) for tensor in call.tensors]}"
        if hole:
            yield "refused", f"{hole} | {text}"
        elif problem := messages[first[body(function), *map(id, call.tensors)]]:
            yield "wrong", f"{problem} | {text}"


def _outcome(name: str, problems: list[tuple[Status, str]], written: Sequence[Call], options: Options) -> Outcome:
    """How an entry ended; `samples` says how many of the entry's samples of each dtype were taken, where not all."""
    if reason := excluded(entries()[name]):
        return Outcome(name, "excluded", reason)
    if not written and not problems:
        return Outcome(name, "excluded", "the entry has no sample for the CPU in float64, int64, bool, float32 or bfloat16")
    details: dict[str, Any] = {"calls": len(written), "limit": options.samples, **_cut(entries()[name], options)}
    if not problems:
        return Outcome(name, "right", "", details)
    details |= {"failed": len(problems), "reasons": [reason for _, reason in problems[:8]]}
    status: Status = "wrong" if any(status == "wrong" for status, _ in problems) else "refused"
    return Outcome(name, status, next(reason for kind, reason in problems if kind == status)[:500], details)


def _cut(entry: Any, options: Options) -> dict[str, dict[str, str]]:
    """Dtype → "taken of all", where a limit left samples out."""
    sizes = {dtype: (share(entry, dtype, options.samples), len(inputs(entry, dtype))) for dtype in dtypes(entry)}
    cut = {str(dtype).removeprefix("torch."): f"{used} of {every}" for dtype, (used, every) in sizes.items() if used and used < every}
    return {"samples": cut} if cut else {}


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """How much of the database was run: calls in all spellings, and entries of which a limit left samples out."""
    judged = [outcome.details for outcome in outcomes if "calls" in outcome.details]
    limits = sorted({str(details["limit"]) for details in judged if details.get("samples")})
    return {
        "calls": sum(details["calls"] for details in judged),
        "entries with every sample": sum("samples" not in details for details in judged),
        "entries with a part of their samples": sum("samples" in details for details in judged),
        "samples of a dtype at most": ", ".join(limits),
    }


def report(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The summary, as lines."""
    yield from (f"{name}: {value}" for name, value in summary(outcomes).items() if value)


def versions(outcomes: object) -> dict[str, str]:
    """What the suite was measured on."""
    return {package: version(package) for package in ("torch", "jax", "flax", "numpy")}


OPS = Suite("ops", "Operators (PyTorch's `op_db`)", "operators", groups, run, 120.0, versions, kept=True, summary=summary, report=report)
