"""Arguments that say to which row each number belongs: `out.index_add(0, batch, x)`, `x.index_select(0, order)`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from migrate_agent.tools.record.guessing.trials.origins import argument_of
from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome, set_call
from migrate_agent.tools.record.guessing.values import Tensor

OF_VECTORS = re.compile(r"Index (is supposed to be|has to be) a vector|Index should have dimension 1 or 0")
ROWS = 2
"""Into which they go: fewer than any table has."""


def index_vectors(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """The attempt with a vector of integers in the place of the index of a failed operation: one for each row of what it goes with, which is the last
    operand, or the only one beside the table."""
    operands = outcome.operation.operands
    if len(operands) < 2 or not OF_VECTORS.search(outcome.error):
        return
    index, call = operands[1], dict(attempt.call or ())
    rows = operands[-1] if len(operands) > 2 else operands[0]
    for name in dict.fromkeys(argument_of(path) for path in index.origins):
        value = call.get(name)
        if isinstance(value, Tensor) and rows.shape:
            yield set_call(attempt, name, replace(value, shape=rows.shape[:1], kind="integer", high=ROWS))
