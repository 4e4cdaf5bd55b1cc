"""Inputs of which code takes one step at a time, `for t in range(x.size(1)): self.cell(x[:, t])`: they have one axis more than what takes a step."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from migrate_agent.tools.record.guessing.choices import nodes_of
from migrate_agent.tools.record.guessing.trials.demands import UNLIKE
from migrate_agent.tools.record.guessing.trials.origins import Operand, Operation
from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome, set_call
from migrate_agent.tools.record.guessing.values import Tensor

CONVOLUTION = re.compile(r"conv[123]d")
MOST_STEPS = 16


def steps_asked(attempt: Attempt, outcome: Outcome, called: Any) -> Iterator[Attempt]:
    """The attempt with an input whose steps have the shape that the failed operation asks for, where they lack axes or have other channels."""
    axes, call = dict(_stepped(called)), dict(attempt.call or ())
    for operand, shape in _asked(outcome.operation, outcome.error):
        for name in operand.origins:
            value, axis = call.get(name), axes.get(name)
            if isinstance(value, Tensor) and axis is not None and _without(value.shape, axis) == operand.shape:
                yield set_call(attempt, name, replace(value, shape=(*shape[:axis], min(value.shape[axis], MOST_STEPS), *shape[axis:])))


def _asked(operation: Operation, error: str) -> Iterator[tuple[Operand, tuple[int, ...]]]:
    """The operand of a failed operation that does not fit, and the shape that it should have: that of the operand it does not broadcast with, or of a batch of
    what the weight of a convolution takes, which takes a single one too."""
    operands = operation.operands
    if UNLIKE.search(error) and len(operands) == 2 and len(operands[0].shape) != len(operands[1].shape):
        fewer, more = sorted(operands, key=lambda operand: len(operand.shape))
        yield fewer, more.shape
    elif CONVOLUTION.fullmatch(operation.name) and len(operands) > 1 and 0 < len(operands[0].shape) <= len(operands[1].shape):
        part, weight = operands[0], operands[1].shape
        sides = part.shape[1:][-(len(weight) - 2) :]  # without the channels, where it has such
        yield part, (part.shape[0], weight[1], *sides, *sides[-1:] * (len(weight) - 2 - len(sides)))


def _without(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :]) if axis < len(shape) else ()


def _stepped(called: Any) -> Iterator[tuple[str, int]]:
    """Name → axis, of what is read at the variable of a loop over numbers: `x[:, t]`, `x[t]`."""
    nodes = nodes_of(called) if called is not None else ()
    numbers = {target for node in nodes for target in counters(node)}
    for node in nodes:
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=index, ctx=ast.Load()):
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                axis = next((at for at, part in enumerate(parts) if not isinstance(part, ast.Slice)), None)
                if axis is not None and isinstance(part := parts[axis], ast.Name) and part.id in numbers:
                    yield name, axis


def counters(node: ast.AST) -> Iterator[str]:
    """The variable of a loop over numbers: `for t in range(n)`, `for t in reversed(range(n))`."""
    match node:
        case ast.For(target=ast.Name(id=name), iter=rows) | ast.comprehension(target=ast.Name(id=name), iter=rows):
            while isinstance(rows, ast.Call) and isinstance(rows.func, ast.Name) and rows.func.id == "reversed" and rows.args:
                rows = rows.args[0]
            if isinstance(rows, ast.Call) and isinstance(rows.func, ast.Name) and rows.func.id in ("range", "xrange"):
                yield name
