"""Fills the memory that `torch.empty` and similar functions return, so that it is the same in each run. Imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

UNSET = frozenset({"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"})


class FilledMemory(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode in which new memory holds `value` (0 or 1) instead of arbitrary numbers.

    Elements that differ between runs with the two values were never set by the code that ran.
    """

    def __init__(self, value: int = 0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.value = value

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Run `func`, and fill a result that it does not set."""
        result = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ in UNSET and isinstance(result, torch.Tensor):
            result.fill_(self.value)
        return result
