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


def _is_undefined(values: torch.Tensor, dtype: torch.dtype) -> bool:
    """Whether a value is outside of the range of an integer dtype."""
    if dtype.is_floating_point or dtype.is_complex or dtype == torch.bool or not values.is_floating_point():
        return False
    bounds = torch.iinfo(dtype)
    # NaN fails both comparisons.
    return not bool(((values >= float(bounds.min)) & (values < float(bounds.max) + 1)).all())
