"""Memory that nothing sets: what a method leaves in it says nothing of the method, and what a constructor leaves in it is set by its callers, such as the
parameters `torch.FloatTensor(8, 8)` of a model that a function of the repository makes and initialises."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LARGEST = 1e4
SCALE = 0.1


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


def set_memory(module: Any) -> None:
    """Draw the parameters that hold what no initialisation gives: infinities, NaN and very large numbers."""
    import torch

    parameters = module.parameters() if isinstance(module, torch.nn.Module) else ()
    with torch.no_grad():
        for parameter in parameters:
            if not torch.nn.parameter.is_lazy(parameter) and parameter.is_floating_point() and not bool((parameter.abs() <= LARGEST).all()):
                parameter.normal_(0, SCALE, generator=torch.Generator().manual_seed(0))
