"""Convolutions of inputs with zeros between them, without the zeros. Used inside the sandbox, on the candidate's side.

Gradients of strided convolutions and transposed ones are of this form. XLA's library for the CPU copies the window of each output into one matrix, which
is zeros for the most part: 157 GB for the gradient of patches of 16 by 16 of two images.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any, NamedTuple

import jax.numpy as jnp


@dataclass(frozen=True)
class Axis:
    """One axis of a convolution: `size` inputs at every `step`-th place, `low` and `high` zeros around them, a window of `window`, `length` outputs.

    Outputs `step` apart meet the same part of the window, at neighbouring inputs: out[step q + p] is the sum over u of
    input[q + u - low // step] window[step u + low % step - p]. So each phase p has a window of its own.
    """

    step: int
    size: int
    window: int
    low: int
    high: int
    stride: int
    spacing: int

    @property
    def length(self) -> int:
        """The number of outputs."""
        around = (self.size - 1) * self.step + 1 + self.low + self.high - (self.window - 1) * self.spacing - 1
        return around // self.stride + 1

    @property
    def plain(self) -> bool:
        """Whether no zeros lie between the inputs."""
        return self.step == 1

    @property
    def splits(self) -> bool:
        """Whether the zeros between the inputs can be left out."""
        return self.stride == self.spacing == 1

    @property
    def before(self) -> int:
        """Zeros in front of the window, so that all phases begin at the same input."""
        return self.step - 1 - self.low % self.step

    @property
    def part(self) -> int:
        """The size of a phase's window."""
        return -(-(self.window + self.before) // self.step)

    @property
    def after(self) -> int:
        """Zeros behind the window, so that all phases end at the same input."""
        return self.part * self.step - self.window - self.before

    @property
    def rows(self) -> int:
        """The number of outputs of a phase; a last one may be too much."""
        return -(-self.length // self.step) if not self.plain else self.length

    @property
    def together(self) -> tuple[Group, ...]:
        """All phases, with zeros where the window of one has no place. Such a zero makes NaN of an infinite input that it meets."""
        return self.groups if self.plain else (Group(self.step, (0, self.part), self._padding(0, self.part)),)

    @property
    def groups(self) -> tuple[Group, ...]:
        """The phases, in order, by the places that their windows have."""
        if self.plain:
            return (Group(1, (0, self.window), (self.low, self.high)),)
        taps = [self._taps(phase) for phase in range(self.step)]
        return tuple(Group(len(list(phases)), tap, self._padding(*tap)) for tap, phases in groupby(taps))

    def _taps(self, phase: int) -> tuple[int, int]:
        """The first place u of a phase's window, and the one behind the last, whose window[step u + low % step - phase] is there."""
        first = self.low % self.step - phase
        return -(first // self.step), -((first - self.window) // self.step)

    def _padding(self, first: int, end: int) -> tuple[int, int]:
        """Zeros around the inputs of a phase with these places; below 0, inputs that no output meets."""
        low = self.low // self.step - first
        return low, self.rows - 1 + end - first - self.size - low


class Group(NamedTuple):
    """Neighbouring phases whose windows have the same places: their number, the first place and the one behind the last, zeros around the inputs."""

    phases: int
    taps: tuple[int, int]
    padding: tuple[int, int]


def axes_of(lhs: Sequence[int], rhs: Sequence[int], params: Mapping[str, Any]) -> list[Axis]:
    """The spatial axes of a convolution of inputs and a window of these shapes, with the parameters of `lax.conv_general_dilated_p`."""
    numbers = params["dimension_numbers"]
    sizes = zip(numbers.lhs_spec[2:], numbers.rhs_spec[2:], strict=True)
    steps = zip(params["lhs_dilation"], params["padding"], params["window_strides"], params["rhs_dilation"], strict=True)
    return [
        Axis(step, lhs[one], rhs[other], low, high, stride, spacing)
        for (one, other), (step, (low, high), stride, spacing) in zip(sizes, steps, strict=True)
    ]


def stays_spread(lhs: Sequence[int], rhs: Sequence[int], params: Mapping[str, Any]) -> bool:
    """Whether `by_phases` is not for this convolution, though zeros lie between its inputs: where the window or the outputs have steps on such an axis,
    and where each channel has a group of its own."""
    dilated = [axis for axis in axes_of(lhs, rhs, params) if not axis.plain]
    channels = lhs[params["dimension_numbers"].lhs_spec[1]]
    return bool(dilated) and (not all(axis.splits for axis in dilated) or 1 < params["feature_group_count"] == channels)


def by_phases(
    lhs: Any, rhs: Any, params: Mapping[str, Any], convolve: Callable[[Any, Any, dict[str, Any]], Any], finite: bool = False
) -> Any:
    """The convolution of inputs [batch, channels, …] and a window [features, channels, …], as ones without zeros between inputs.

    The phases of a group are features of one of these, which `convolve` computes from inputs, window and parameters; all phases of a single one where
    the inputs are `finite`, which compiles sooner.
    """
    axes = axes_of(lhs.shape, rhs.shape, params)
    of_axis = [axis.together if finite else axis.groups for axis in axes]
    windows = _windows(rhs, axes)
    spread = {**params, "lhs_dilation": (1,) * len(axes)}
    rows = [axis.rows for axis in axes]

    def part(starts: Sequence[int], groups: Sequence[Group]) -> Any:
        """The outputs [batch, features, phases of each axis, rows of each axis] of one group of each axis."""
        counts = [group.phases for group in groups]
        if any(group.taps[0] >= group.taps[1] for group in groups):
            return jnp.zeros((lhs.shape[0] // params["batch_group_count"], rhs.shape[0], *counts, *rows), lhs.dtype)
        phases = tuple(slice(start, start + count) for start, count in zip(starts, counts, strict=True))
        window = windows[(slice(None), *phases, slice(None), *(slice(*group.taps) for group in groups))]
        window = window.reshape(-1, *window.shape[1 + len(axes) :])
        out = convolve(lhs, window, {**spread, "padding": tuple(group.padding for group in groups)})
        return out.reshape(out.shape[0], -1, *counts, *rows)

    def along(starts: Sequence[int], groups: Sequence[Group]) -> Any:
        """The outputs of all groups of the axes behind those that are decided."""
        number = len(groups)
        if number == len(axes):
            return part(starts, groups)
        offsets = accumulate((group.phases for group in of_axis[number]), initial=0)
        parts = [along([*starts, start], [*groups, group]) for start, group in zip(offsets, of_axis[number], strict=False)]
        return jnp.concatenate(parts, axis=2 + number) if len(parts) > 1 else parts[0]

    out = along([], [])
    pairs = [2 + number + offset for number in range(len(axes)) for offset in (len(axes), 0)]
    out = out.transpose(0, 1, *pairs).reshape(*out.shape[:2], *(axis.rows * axis.step for axis in axes))
    return out[(..., *(slice(axis.length) for axis in axes))]


def _windows(rhs: Any, axes: Sequence[Axis]) -> Any:
    """The windows of all phases [features, phases of each axis, channels, places of each axis], zeros where one has no place."""
    features, channels = rhs.shape[:2]
    rhs = jnp.pad(rhs, [(0, 0), (0, 0), *((axis.before, axis.after) for axis in axes)])
    rhs = rhs.reshape(features, channels, *(size for axis in axes for size in (axis.part, axis.step)))
    parts, phases = tuple(range(2, rhs.ndim, 2)), tuple(range(3, rhs.ndim, 2))
    return jnp.flip(rhs, phases).transpose(0, *phases, 1, *parts)
