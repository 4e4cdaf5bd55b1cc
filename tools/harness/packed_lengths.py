"""Lengths of packed sequences: which of them another batch may have. numpy only.

`pack_padded_sequence` takes lengths of 1 to as many steps as there are, in falling order where it is not told otherwise. What `pad_packed_sequence` makes of
them has as many steps as the longest sequence. A port's shapes do not follow values, so that it serves batches with a sequence as long as the padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Packed(NamedTuple):
    """One call of `pack_padded_sequence`."""

    lengths: tuple[int, ...]
    """In falling order."""
    steps: int
    """As many as the padded sequences have."""
    axis: int
    """Where the steps stand: 1 where the batch comes first."""

    @property
    def is_full(self) -> bool:
        """Whether a sequence is as long as the padding."""
        return bool(self.lengths) and max(self.lengths) == self.steps


@dataclass(frozen=True)
class PackedLengths:
    """What an input that decides lengths of packed sequences has in every batch."""

    axes: tuple[tuple[int, int], ...]
    """Numbers of inputs and their axes along which the padded steps stand."""
    least: int
    """The smallest value; of lengths themselves."""
    most: int
    """The largest value; that of the longest sequence."""
    full: bool
    """Whether one sequence is as long as the padding."""
    falling: bool
    """Whether lengths must be in falling order."""
    batch: int | None = None
    """The axis of samples of a mask, or of tokens with padding, from which lengths are counted; None of lengths themselves, one for each sample."""
    padding: float = 0
    """What is not counted."""

    def draw(self, value: Array, generator: np.random.Generator) -> Array:
        """Another input of the shape of the recorded one: lengths anew, or its samples in another order (falling lengths: some of them, in their own) and
        with other tokens in the places of tokens."""
        if self.batch is None:
            return generator.integers(self.least, self.most, value.shape, endpoint=True).astype(value.dtype)
        count = value.shape[self.batch]
        rows = np.sort(np.append(generator.integers(count, size=count - 1), 0)) if self.falling else generator.permutation(count)
        samples, tokens = np.take(value, rows, axis=self.batch), value[value != self.padding]
        return np.where(samples == self.padding, samples, generator.choice(tokens, value.shape)) if tokens.size else samples

    def fit(self, value: Array, added: int) -> Array:
        """Lengths that may be packed beside so many added (negative: removed) steps. What lengths are counted from stays as it is."""
        most = self.most + added
        if self.batch is not None or not value.size or most < min(self.least, 1):
            return value
        flat = np.minimum(value, most).astype(value.dtype).reshape(-1)
        if self.full:
            flat[flat.argmax()] = most
        return (np.sort(flat)[::-1] if self.falling else flat).reshape(value.shape)

    def added(self, recorded: Sequence[tuple[int, ...]], shapes: Sequence[tuple[int, ...]]) -> int:
        """How many steps inputs of these shapes have more than the recorded ones; of several inputs the largest change."""
        changes = [shapes[number][axis] - recorded[number][axis] for number, axis in self.axes if axis < len(shapes[number])]
        return max(changes, key=abs, default=0)


def step_axes(shapes: Sequence[tuple[int, ...]], packed: Packed, most: int) -> tuple[tuple[int, int], ...]:
    """The numbers and axes of inputs of these shapes along which the packed steps may stand: those of their number, else of the largest length."""
    batch = len(packed.lengths)
    for size in (packed.steps, most):
        for axis in (packed.axis, 1 - packed.axis):
            axes = tuple(
                (number, axis) for number, shape in enumerate(shapes) if len(shape) > 1 and (shape[axis], shape[1 - axis]) == (size, batch)
            )
            if axes:
                return axes
    return ()
