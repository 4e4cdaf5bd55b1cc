"""States of recurrent cells, with as many numbers as the cell keeps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome
from migrate_agent.tools.record.guessing.values import Tensor, Value, change_tensors

HIDDEN = re.compile(r"hidden\d? has inconsistent hidden_size: got (?P<width>\d+), expected (?P<taken>\d+)")
MOST_AXES = 3


def states_asked(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """The attempt with the states that a cell refuses as wide as it asks: all arguments but the first that have that width."""
    match = HIDDEN.search(outcome.error)
    if match is None or not attempt.call:
        return
    width, taken = int(match["width"]), int(match["taken"])

    def widened(value: Value) -> Value:
        def change(tensor: Tensor) -> Tensor:
            is_state = len(tensor.shape) <= MOST_AXES and tensor.shape[-1:] == (width,)
            return replace(tensor, shape=(*tensor.shape[:-1], taken)) if is_state else tensor

        return change_tensors(value, change)

    call = (attempt.call[0], *((name, widened(value)) for name, value in attempt.call[1:]))
    if call != attempt.call:
        yield replace(attempt, call=call)
