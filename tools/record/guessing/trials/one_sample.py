"""One sample where a view is asked of what is not laid out for it: older versions of torch laid copies out anew (`x.t().clone().view(-1)`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome
from migrate_agent.tools.record.guessing.values import Tensor, change_tensors

STRIDED = "view size is not compatible with input tensor's size and stride"


def one_sample(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """The call with one sample in each tensor: its axis is none that two others could span."""

    def change(tensor: Tensor) -> Tensor:
        return replace(tensor, shape=(1, *tensor.shape[1:])) if len(tensor.shape) > 1 else tensor

    if STRIDED in outcome.error:
        yield replace(attempt, call=tuple((name, change_tensors(value, change)) for name, value in attempt.call or ()))
