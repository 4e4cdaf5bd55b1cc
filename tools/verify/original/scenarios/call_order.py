"""Calls that come after one of another method: what a method stores in the module shows in the calls that read it. Used inside the sandbox, on the
original's side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from migrate_agent.tools.harness.common import budgets
from migrate_agent.tools.harness.torch_side.module import Result
from migrate_agent.tools.verify.contract.scenario import Role
from migrate_agent.tools.verify.original.outputs import attempt, finite_share
from migrate_agent.tools.verify.original.scenarios.writer import ScenarioWriter

Pair = tuple[ScenarioWriter, ScenarioWriter]


def call_in_order(writers: Sequence[ScenarioWriter]) -> None:
    """Add calls of modules after a call of another method, and after their own call and that method, where the original gives or leaves something
    else then."""
    written, pairs = 0, set[tuple[str, str]]()
    for number, (first, then) in enumerate(_pairs([writer for writer in writers if not writer.original.is_function])):
        methods = (first.original.method, then.original.method)
        if number >= budgets.ORDER_TRIES or written >= budgets.ORDERED:
            return
        if methods not in pairs and _write(first, then):
            pairs.add(methods)
            written += 1


def _pairs(writers: Sequence[ScenarioWriter]) -> Iterator[Pair]:
    """A call and another one that comes after it, of modules that are constructed alike; those of methods come first, before the module's own call."""
    pairs = [(first, then) for first in writers for then in writers if first is not then and _construction(first) == _construction(then)]
    pairs = [(first, then) for first, then in pairs if first.original.method != then.original.method]
    yield from sorted(pairs, key=lambda pair: (not pair[0].original.method, bool(pair[1].original.method)))


def _construction(writer: ScenarioWriter) -> tuple[Any, ...]:
    return writer.texts["init"], writer.texts["setup"], repr(writer.original.changes)


def _write(first: ScenarioWriter, then: ScenarioWriter) -> bool:
    """Write the second call, once after the first alone, or else after a call of its own and the first; whether either shows something."""
    label = f"after-{first.original.method or 'call'}-eval"
    usual = attempt(partial(_call, then))
    if usual is None or 0 not in then.states or usual.draws:
        return False
    if _shows(usual, then, first, own=False):
        return then.attempt(label, Role.AGAIN, 0, then.values(0), prior=first, runs=1)
    again = attempt(partial(_call, then, own=True))
    if again is not None and not _alike(usual, again) and _shows(again, then, first, own=True):
        return then.attempt(f"again-{label}", Role.AGAIN, 0, then.values(0), before=then.values(0), prior=first, runs=1)
    return False


def _call(then: ScenarioWriter, first: ScenarioWriter | None = None, own: bool = False, spoiled: bool = False) -> Result:
    prior = (first.original, first.values(0)) if first is not None else None
    before = then.values(0) if own else None
    return then.original.run(then.states[0], then.values(0), "eval", before=before, prior=prior, spoiled=spoiled)


def _shows(usual: Result, then: ScenarioWriter, first: ScenarioWriter, own: bool) -> bool:
    """Whether the call gives something else after the first, which draws nothing, or reads what that left: an inverse that is stored is the one that the
    call would compute itself."""
    drawn, result = attempt(partial(_call, first)), attempt(partial(_call, then, first, own))
    if result is None or drawn is None or drawn.draws or finite_share(result) < finite_share(usual):
        return False
    if not _alike(result, usual):
        return True
    spoiled = attempt(partial(_call, then, first, own, spoiled=True))
    return spoiled is not None and not _alike(result, spoiled)


def _alike(one: Result, other: Result) -> bool:
    """Whether two calls gave and left the same, whatever attributes hold."""
    names = [[key for key in side.arrays if key.startswith(("out/", "state/"))] for side in (one, other)]
    equal = (np.array_equal(one.arrays[key], other.arrays[key], equal_nan=True) for key in names[0] if key in other.arrays)
    return one.tree == other.tree and sorted(names[0]) == sorted(names[1]) and all(equal)
