"""Tables that a constructor computes and no state carries: buffers that are not persistent, and plain tensors. Each side computes its own.

A table of `sin(t * 10 ** k)` has errors of its arguments' size times the rounding of each step before it; a program may be as far off by what it
reads from there. Rounding noise therefore goes into the constructor as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch


def tables_of(module: Any) -> dict[str, torch.Tensor]:
    """Path → each float64 table of a module and its parts."""
    carried = {id(value) for value in module.state_dict(keep_vars=True).values()}
    tensors = {
        f"{path}.{name}" if path else name: value
        for path, part in module.named_modules()
        for name, value in (*part._buffers.items(), *vars(part).items())
        if isinstance(value, torch.Tensor) and value.dtype == torch.float64 and value.layout is torch.strided
    }
    return {path: value.detach() for path, value in tensors.items() if id(value) not in carried}


@torch.no_grad()
def put_tables(module: Any, tables: Mapping[str, torch.Tensor]) -> None:
    """Write the values of tables into those of a module that are as large and finite in the same places, and have a place for each element."""
    for path, value in tables_of(module).items():
        other = tables.get(path)
        if other is None or other.shape != value.shape or not torch.equal(value.isfinite(), other.isfinite()):
            continue
        if all(step for step, size in zip(value.stride(), value.shape, strict=True) if size > 1):
            value.copy_(other)
