"""One sample where code takes no more: a view of what is not laid out for it, since older versions of torch laid copies out anew
(`x.t().clone().view(-1)`), and a number that is read out of what has several (`action.item()`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome
from migrate_agent.tools.record.guessing.values import Tensor, change_tensors

STRIDED = "view size is not compatible with input tensor's size and stride"
NUMBER = re.compile(
    r"Tensor with \d+ elements cannot be converted to Scalar|only (one element|single-element) tensors can be converted to Python scalars"
)


def one_sample(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """The call with one sample in each tensor: its axis is none that two others could span."""

    def change(tensor: Tensor) -> Tensor:
        return replace(tensor, shape=(1, *tensor.shape[1:])) if len(tensor.shape) > 1 else tensor

    def alone(tensor: Tensor) -> Tensor:
        return replace(tensor, shape=tensor.shape[-1:])

    for changed in (change,) if STRIDED in outcome.error else (change, alone) if NUMBER.search(outcome.error) else ():
        yield replace(attempt, call=tuple((name, change_tensors(value, changed)) for name, value in attempt.call or ()))
