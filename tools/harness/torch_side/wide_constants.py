"""Tensors among the constants of the user's files, in double precision while the original runs in float64."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from migrate_agent.tools.harness.common.host_random import own_modules

MOST_ITEMS = 1000
"""Longer tables of constants hold words or numbers, and are not gone through for each run."""
NARROW = {torch.float32: torch.float64, torch.complex64: torch.complex128}


@contextmanager
def wide_constants() -> Iterator[None]:
    """Put float64 tensors in the place of the float32 ones that the user's files hold by name (`PI = torch.FloatTensor([math.pi])`), with the values
    that float32 gave them: what is computed of them alone would be float32 else, where the port's is float64. What requires gradients stays."""
    put: list[tuple[dict[str, Any], str, Any, Any]] = []
    for module in own_modules():
        names = vars(module)
        for name, value in list(names.items()):
            wide = _widened(value) if not name.startswith("__") else value
            if wide is not value:
                put.append((names, name, value, wide))
                names[name] = wide
    try:
        yield
    finally:
        for names, name, value, wide in put:
            if names.get(name) is wide:
                names[name] = value


def _widened(value: Any) -> Any:
    """The value with its narrow tensors in double precision; the value itself where it has none."""
    match value:
        case torch.Tensor() if value.dtype in NARROW and not value.requires_grad and type(value) is torch.Tensor:
            return value.to(NARROW[value.dtype])
        case dict() if type(value) is dict and len(value) <= MOST_ITEMS:
            items = {key: _widened(item) for key, item in value.items()}
            return items if any(items[key] is not item for key, item in value.items()) else value
        case list() | tuple() if type(value) in (list, tuple) and len(value) <= MOST_ITEMS:
            parts = [_widened(item) for item in value]
            return type(value)(parts) if any(one is not other for one, other in zip(parts, value, strict=True)) else value
    return value
