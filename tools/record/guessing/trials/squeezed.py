"""Arguments of which code takes an axis away: `state.squeeze(1)` wants one of size 1 there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from migrate_agent.tools.record.guessing.choices import nodes_of
from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome
from migrate_agent.tools.record.guessing.values import Tensor, Value

RANKS = re.compile(r"same number of dimensions|must match the size|must match the existing size|Sizes of tensors must match")


def squeezed(attempt: Attempt, outcome: Outcome, called: Any) -> Iterator[Attempt]:
    """The attempt with size 1 in those axes of the arguments that the code squeezes, where ranks or sizes do not fit each other."""
    if not RANKS.search(outcome.error) or attempt.call is None:
        return
    axes = dict(_squeezed(called))
    values = tuple((name, _with_one(value, axes[name]) if name in axes else value) for name, value in attempt.call)
    if values != attempt.call:
        yield replace(attempt, call=values)


def _squeezed(called: Any) -> Iterator[tuple[str, int]]:
    """Name → axis, of `name.squeeze(axis)` and `torch.squeeze(name, axis)`."""
    for node in nodes_of(called) if called is not None else ():
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="squeeze"), args=[axis]) if name != "torch":
                pass
            case ast.Call(func=ast.Attribute(attr="squeeze"), args=[ast.Name(id=name), axis]):
                pass
            case _:
                continue
        try:
            number = ast.literal_eval(axis)
        except ValueError:
            continue
        if isinstance(number, int):
            yield name, number


def _with_one(value: Value, axis: int) -> Value:
    if not isinstance(value, Tensor) or not -len(value.shape) <= axis < len(value.shape):
        return value
    shape = list(value.shape)
    shape[axis] = 1
    return replace(value, shape=tuple(shape))
