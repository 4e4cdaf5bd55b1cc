"""Forms of an attempt that runs with more numbers in its inputs, so that a normalisation in training sees enough of each channel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from migrate_agent.tools.record.guessing.trials.trial import Attempt
from migrate_agent.tools.record.guessing.values import Tensor, change_tensors, tensors

MORE_SAMPLES = (2, 4)
LARGER_SIDES = (2, 4)
IMAGE_AXES = 3
"""Axes from which on a tensor has sides behind its samples and channels."""


def more_normalised(attempt: Attempt) -> Iterator[Attempt]:
    """The attempt with more samples, in all inputs that have as many; then with larger sides."""
    sizes = Counter(tensor.shape[0] for _, value in attempt.call or () for tensor in tensors(value) if tensor.shape)
    samples = max(sizes, key=sizes.__getitem__, default=0)

    for factor in MORE_SAMPLES if samples else ():
        yield _changed(attempt, partial(_with_samples, samples, factor))
    for factor in LARGER_SIDES:
        larger = _changed(attempt, partial(_with_sides, factor))
        if larger != attempt:
            yield larger


def _changed(attempt: Attempt, change: Callable[[Tensor], Tensor]) -> Attempt:
    return replace(attempt, call=tuple((name, change_tensors(value, change)) for name, value in attempt.call or ()))


def _with_samples(samples: int, factor: int, tensor: Tensor) -> Tensor:
    return replace(tensor, shape=(samples * factor, *tensor.shape[1:])) if tensor.shape[:1] == (samples,) else tensor


def _with_sides(factor: int, tensor: Tensor) -> Tensor:
    sides = (side * factor for side in tensor.shape[2:])
    return replace(tensor, shape=(*tensor.shape[:2], *sides)) if len(tensor.shape) >= IMAGE_AXES else tensor
