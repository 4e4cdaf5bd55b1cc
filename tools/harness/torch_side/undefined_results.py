"""Tells where the original computes what is up to the machine. Used inside the sandbox, on the original's side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from migrate_agent.tools.harness.torch_side.precision import OperatorMode

CONVERSIONS = frozenset({torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default})


class UndefinedResults(OperatorMode):  # type: ignore[no-untyped-call]
    """A mode that notes (`found`) whether a NaN, an infinity or a float beyond the dtype's range became an integer.

    torch calls the integer undefined: it is the least one on one machine, and zero or the nearest one on another, as JAX has it.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found = False

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Run `func`, and look at what it converts."""
        result = func(*args, **(kwargs or {}))
        if not self.found and func in CONVERSIONS:
            self.found = _is_undefined(args[1] if func is torch.ops.aten.copy_.default else args[0], result.dtype)
        return result


class NearestIntegers(OperatorMode):  # type: ignore[no-untyped-call]
    """A mode that makes such floats the integers that XLA makes of them: zero of NaN, else the nearest one, of int32 where JAX `is_narrow`."""

    def __init__(self, is_narrow: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.is_narrow = is_narrow

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Run `func`, with other integers where it converts."""
        if func is torch.ops.aten.copy_.default:
            return func(args[0], self._converted(args[1], args[0].dtype), *args[2:], **(kwargs or {}))
        result = func(*args, **(kwargs or {}))
        if func is torch.ops.aten._to_copy.default and _converts(args[0], result.dtype):
            return self._converted(args[0], result.dtype)
        return result

    def _converted(self, values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        if not _converts(values, dtype):
            return values
        bounds = torch.iinfo(torch.int32 if self.is_narrow and dtype == torch.int64 else dtype)
        inside = torch.where(_within(values, bounds), values, 0).to(dtype)
        return inside.masked_fill(values >= float(bounds.max) + 1, bounds.max).masked_fill(values < float(bounds.min), bounds.min)


def _is_undefined(values: torch.Tensor, dtype: torch.dtype) -> bool:
    """Whether a value is outside of the range of an integer dtype."""
    return _converts(values, dtype) and not bool(_within(values, torch.iinfo(dtype)).all())


def _converts(values: torch.Tensor, dtype: torch.dtype) -> bool:
    """Whether floats become integers."""
    return values.is_floating_point() and not (dtype.is_floating_point or dtype.is_complex or dtype == torch.bool)


def _within(values: torch.Tensor, bounds: torch.iinfo) -> torch.Tensor:
    # NaN fails both comparisons.
    return (values >= float(bounds.min)) & (values < float(bounds.max) + 1)
