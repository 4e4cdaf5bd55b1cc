"""Tensors of the sizes that code asked for before it refused others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from migrate_agent.tools.record.guessing.sizes.asked_sizes import AskedSize
from migrate_agent.tools.record.guessing.trials.origins import argument_of
from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome
from migrate_agent.tools.record.guessing.values import Tensor, change_tensors

NEW_SIZE = 8
"""Of an axis that a tensor lacks."""


def of_asked_sizes(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """The call with tensors of the asked size: those that the refused one came from, then all that have as many in that axis."""
    for request in outcome.place.asked:
        names = [argument_of(path) for path in request.origins]
        everywhere = [name for name, _ in attempt.call or ()] if request.axis is not None else []
        for chosen in dict.fromkeys((tuple(names), tuple(everywhere))):
            call = tuple(
                (name, change_tensors(value, lambda tensor: _with_size(tensor, request)) if name in chosen else value)  # noqa: B023
                for name, value in attempt.call or ()
            )
            if call != attempt.call:
                yield replace(attempt, call=call)


SPLIT = re.compile(r"split_sizes to sum exactly to (\d+) \(input tensor's size at dimension (-?\d+)\), but got split_sizes=\[([\d, ]+)\]")


def of_split_sizes(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """The call with tensors as long as the parts together that `torch.split` was asked for."""
    match = SPLIT.search(outcome.error)
    if match is None:
        return
    now, axis, total = int(match[1]), int(match[2]), sum(map(int, match[3].split(",")))

    def change(tensor: Tensor) -> Tensor:
        shape = list(tensor.shape)
        if -len(shape) <= axis < len(shape) and shape[axis] == now and total:
            shape[axis] = total
        return replace(tensor, shape=tuple(shape))

    call = tuple((name, change_tensors(value, change)) for name, value in attempt.call or ())
    if call != attempt.call:
        yield replace(attempt, call=call)


def _with_size(tensor: Tensor, request: AskedSize) -> Tensor:
    shape, axis, size = tensor.shape, request.axis, request.size
    if axis is None and len(shape) > 1:
        more = (*shape[:1], *(NEW_SIZE,) * (size - len(shape)), *shape[1:])
        return replace(tensor, shape=more if len(shape) < size else (*shape[: size - 1], shape[-1]))
    if axis is not None and axis < len(shape) and shape[axis] == request.shape[axis]:
        return replace(tensor, shape=(*shape[:axis], size, *shape[axis + 1 :]))
    return tensor
