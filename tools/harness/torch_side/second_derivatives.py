"""What torch's second derivatives need before they can be compared. Used inside the sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class WeightNormByFormula(TorchFunctionMode):
    """A mode in which weight norm is its formula, `g * v / |v|`: torch's own operator takes the norm for a constant when it is differentiated twice
    (`torch.autograd.gradgradcheck` fails).
    """

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Run `func`, or the formula in place of `torch._weight_norm(v, g, dim)`."""
        return _weight_norm(*args, **(kwargs or {})) if func is torch._weight_norm else func(*args, **(kwargs or {}))


def _weight_norm(v: torch.Tensor, g: torch.Tensor, dim: int = 0) -> torch.Tensor:
    return v * (g / torch.norm_except_dim(v, 2, dim))
