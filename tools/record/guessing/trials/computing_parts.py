"""Modules that compute, each something else, in the place of those that a guess was given and that hand back what they take: of two that do nothing no check tells
which one a rewrite calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle

from migrate_agent.tools.record.guessing.trials.trial import Attempt
from migrate_agent.tools.record.guessing.values import Fields, Sequence, Value

IDLE = re.compile(r"\btorch\.nn\.Identity\(\)")
COMPUTING = ("torch.nn.Tanh()", "torch.nn.Sigmoid()", "torch.nn.Softsign()", "torch.nn.SiLU()")
"""Of any size, and smooth."""


def computing_parts(attempt: Attempt) -> Attempt:
    """The attempt with such modules in its constructor call."""
    modules = cycle(COMPUTING)
    return replace(attempt, init=tuple((name, _computing(value, modules)) for name, value in attempt.init))


def _computing(value: Value, modules: Iterator[str]) -> Value:
    match value:
        case str():
            return IDLE.sub(lambda _: next(modules), value)
        case Sequence(items=items):
            return replace(value, items=tuple(_computing(item, modules) for item in items))
        case Fields(items=items):
            return replace(value, items=tuple((name, _computing(item, modules)) for name, item in items))
    return value
