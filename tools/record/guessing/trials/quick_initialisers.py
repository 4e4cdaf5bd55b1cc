"""Random initial values that take little time, for attempts that only have to run: those of a large model take seconds each time that it is built."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LARGE = 2**17
"""Numbers of a tensor from which on a block of values is repeated."""
BLOCK = 2**14
BOUND = 0.02
NAMES = (
    *("uniform_", "normal_", "trunc_normal_", "orthogonal_", "sparse_"),
    *("xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_"),
)
"""Functions of `torch.nn.init` that draw."""


@contextmanager
def quick_initialisers() -> Iterator[None]:
    """Fill large tensors with one block of small random numbers, again and again, where `torch.nn.init` would draw each of them."""
    import torch

    usual = {name: getattr(torch.nn.init, name) for name in NAMES}

    def quick(function: Any) -> Any:
        def fill(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if (
                not isinstance(tensor, torch.Tensor)
                or tensor.numel() < LARGE
                or not tensor.is_contiguous()
                or not tensor.is_floating_point()
            ):
                return function(tensor, *args, **kwargs)
            with torch.no_grad():
                flat = tensor.view(-1)
                block = torch.empty(BLOCK, dtype=tensor.dtype).uniform_(-BOUND, BOUND)
                whole = flat.numel() // BLOCK * BLOCK
                flat[:whole].view(-1, BLOCK).copy_(block.expand(whole // BLOCK, BLOCK))
                flat[whole:].copy_(block[: flat.numel() - whole])
            return tensor

        return fill

    try:
        for name, function in usual.items():
            setattr(torch.nn.init, name, quick(function))
        yield
    finally:
        for name, function in usual.items():
            setattr(torch.nn.init, name, function)
