"""Axes of which code takes a part: `box[:, 2:].expand(n, m, 2)` wants four columns, since two are left out before."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from migrate_agent.tools.record.guessing.trials.origins import argument_of
from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome
from migrate_agent.tools.record.guessing.values import Tensor, change_tensors

EXPANDED = re.compile(r"expanded size of the tensor \((\d+)\) must match the existing size \((\d+)\) at non-singleton dimension")
MOST_LEFT_OUT = 64


def of_parts(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """The call with the last axis as long as the part that is wanted and what was left out of it: of the tensors that the operand came from, then of all
    with that size."""
    match = EXPANDED.search(outcome.error)
    if match is None:
        return
    wanted, size = int(match[1]), int(match[2])
    call = attempt.call or ()
    names = {argument_of(path) for operand in outcome.operation.operands for path in operand.origins}

    def change(tensor: Tensor) -> Tensor:
        left_out = tensor.shape[-1] - size if tensor.shape else 0
        return replace(tensor, shape=(*tensor.shape[:-1], wanted + left_out)) if 0 < left_out <= MOST_LEFT_OUT and wanted > 0 else tensor

    lengths = {value.shape[-1] for name, value in call if name in names and isinstance(value, Tensor) and value.shape}
    alike = {name for name, value in call if isinstance(value, Tensor) and value.shape and value.shape[-1] in lengths}
    for chosen in dict.fromkeys((frozenset(alike), frozenset(names))):
        changed = tuple((name, change_tensors(value, change) if name in chosen else value) for name, value in call)
        if changed != call:
            yield replace(attempt, call=changed)
