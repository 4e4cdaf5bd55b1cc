"""Lets a program that asks for a GPU run on the CPU. Used inside the sandbox, on the original's side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


def on_cpu(value: Any) -> Any:
    """The CPU in place of a GPU; anything else as it is."""
    name = value.type if isinstance(value, torch.device) else value
    return torch.device("cpu") if isinstance(name, str) and name.partition(":")[0] in ("cuda", "mps", "xpu") else value


class CpuInPlaceOfGpu(TorchFunctionMode):
    """A function mode in which calls that name a GPU take the CPU, and memory is not pinned."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Run `func` with its devices replaced."""
        kwargs = {key: on_cpu(value) if key == "device" else value for key, value in (kwargs or {}).items() if key != "pin_memory"}
        return func(*map(on_cpu, args), **kwargs)


def everything_on_cpu() -> None:
    """Replace what puts tensors and modules on a GPU, for the rest of the process."""
    tensor: Any = torch.Tensor
    module: Any = torch.nn.Module
    for owner in (tensor, module):
        owner.cuda = lambda self, *args, **kwargs: self
    tensor.pin_memory = lambda self, *args, **kwargs: self
    own = module.to
    module.to = lambda self, *args, **kwargs: own(self, *map(on_cpu, args), **{key: on_cpu(value) for key, value in kwargs.items()})
    loader: Any = torch.utils.data.DataLoader
    loader.__init__ = _in_process(loader.__init__)
    mode: Any = CpuInPlaceOfGpu()
    mode.__enter__()


def _in_process(own: Callable[..., None]) -> Callable[..., None]:
    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        # Workers are processes, which the sandbox counts; the order of the batches does not depend on them.
        dropped = ("num_workers", "pin_memory", "persistent_workers", "prefetch_factor", "multiprocessing_context")
        own(self, *args, **{key: value for key, value in kwargs.items() if key not in dropped})

    return construct
