"""Tells where the original divides by the deviation of numbers that are as good as equal. Used inside the sandbox, on the original's side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from migrate_agent.tools.harness.torch_side.precision import OperatorMode
from migrate_agent.tools.harness.torch_side.rounding import NORMS, SPREADS

EQUAL = 1e-12
"""Numbers are as good as equal where they deviate by less than this share of the largest one."""


class EqualNumbers(OperatorMode):  # type: ignore[no-untyped-call]
    """A mode that notes (`found`) whether a deviation was taken of equal numbers, alone or in a normalisation.

    What is normalised there is what rounding left, and its gradient is that of rounding times the inverse of an epsilon: one right program has exact zeros,
    another one numbers of any size.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found = False

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Run `func`, and look at what it takes a deviation of."""
        if not self.found and (func in SPREADS or func in NORMS):
            rows = _rows(func, args)
            self.found = rows is not None and _holds_equal(rows)
        return func(*args, **(kwargs or {}))


def _rows(func: Any, args: Sequence[Any]) -> torch.Tensor | None:
    """The numbers of which deviations are taken, [deviations, numbers]; `None` where other statistics are used."""
    values: torch.Tensor = args[0]
    if func in SPREADS:
        reduced = args[1] if len(args) > 1 and args[1] is not None else range(values.ndim)
        axes = sorted({axis % values.ndim for axis in reduced}) if values.ndim else []
        outer = [axis for axis in range(values.ndim) if axis not in axes]
        return (
            values.permute(*outer, *axes).reshape(-1, max(values.numel() // math.prod(values.shape[axis] for axis in outer), 1))
            if values.numel()
            else None
        )
    shape = NORMS[func](args)[0]
    if not shape or not values.numel():
        return None
    if len(shape) < values.ndim:  # samples and groups
        return values.reshape(shape[0] * shape[1], -1)
    outer = [axis for axis, size in enumerate(shape) if size == values.shape[axis] != 1]
    axes = [axis for axis in range(values.ndim) if axis not in outer]
    return values.permute(*outer, *axes).reshape(math.prod(values.shape[axis] for axis in outer), -1)


def _holds_equal(rows: torch.Tensor) -> bool:
    """Whether one row of several numbers has them all alike."""
    if rows.shape[1] < 2 or not rows.dtype.is_floating_point:
        return False
    apart = rows.amax(1) - rows.amin(1)
    return bool((apart <= EQUAL * rows.abs().amax(1)).any())
