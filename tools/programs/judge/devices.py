"""Lets a program that asks for a GPU run on the CPU. Used inside the sandbox, on the original's side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from migrate_agent.tools.harness.torch_side.gpu_names import CpuInPlaceOfGpu, make_legacy_types, on_cpu


def everything_on_cpu() -> None:
    """Replace what puts tensors and modules on a GPU, for the rest of the process."""
    tensor: Any = torch.Tensor
    module: Any = torch.nn.Module
    for owner in (tensor, module):
        owner.cuda = lambda self, *args, **kwargs: self
    tensor.pin_memory = lambda self, *args, **kwargs: self
    own = module.to
    module.to = lambda self, *args, **kwargs: own(self, *map(_device, args), **{key: _device(value) for key, value in kwargs.items()})
    loader: Any = torch.utils.data.DataLoader
    loader.__init__ = _in_process(loader.__init__)
    mode: Any = CpuInPlaceOfGpu()
    mode.__enter__()
    make_legacy_types()


def _device(value: Any) -> Any:
    """The CPU in place of a GPU, which a plain number is too."""
    return torch.device("cpu") if type(value) is int else on_cpu(value)


def _in_process(own: Callable[..., None]) -> Callable[..., None]:
    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        # Workers are processes, which the sandbox counts; the order of the batches does not depend on them.
        dropped = ("num_workers", "pin_memory", "persistent_workers", "prefetch_factor", "multiprocessing_context")
        own(self, *args, **{key: value for key, value in kwargs.items() if key not in dropped})

    return construct
