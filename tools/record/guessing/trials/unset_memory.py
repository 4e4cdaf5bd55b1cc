"""Memory that a method makes and does not set: what it holds says nothing of the method, so a call that leaves some is no example."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def unset_memory_is_nan() -> Iterator[None]:
    """Let torch fill the memory that nothing sets with NaN, as its deterministic algorithms do."""
    import torch

    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])


def with_nan(module: Any) -> set[str]:
    """The names of parameters and buffers that hold a NaN."""
    return {
        name for name, value in module.state_dict().items() if getattr(value, "is_floating_point", bool)() and bool(value.isnan().any())
    }
