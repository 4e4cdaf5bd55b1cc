"""Lets code that asks for a GPU run on the CPU. Used inside the sandbox, on the original's side."""

from __future__ import annotations

import os
import sys
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

GPUS = ("cuda", "mps", "xpu")
LEGACY_TYPES = ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool")


class _LegacyType(type):
    """The type of what stands in the place of `torch.cuda.FloatTensor` and its relatives: called, it makes a tensor on the CPU."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return getattr(torch, cls.__name__)(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return False  # no tensor is on a GPU


def on_cpu(value: Any) -> Any:
    """The CPU in place of a GPU, also in the name of a tensor's type; anything else as it is."""
    if isinstance(value, str) and value.startswith("torch.cuda."):
        return value.replace(".cuda", "", 1)
    if isinstance(value, type) and value.__module__ == "torch.cuda" and value.__name__.endswith("Tensor"):
        return f"torch.{value.__name__}"
    name = value.type if isinstance(value, torch.device) else value
    return torch.device("cpu") if isinstance(name, str) and name.partition(":")[0] in GPUS else value


class CpuInPlaceOfGpu(TorchFunctionMode):
    """A function mode in which calls that name a GPU take the CPU, and memory is not pinned."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Run `func` with its devices replaced."""
        if func in (torch.Tensor.cuda, torch.Tensor.pin_memory):
            return args[0]
        if func is torch.Tensor.to and len(args) > 1 and type(args[1]) is int:  # the number of a GPU
            args = (args[0], "cuda", *args[2:])
        kwargs = {key: on_cpu(value) if key == "device" else value for key, value in (kwargs or {}).items() if key != "pin_memory"}
        return func(*map(on_cpu, args), **kwargs)


_entered: list[CpuInPlaceOfGpu] = []


def spare_gpus() -> None:
    """From now on, where there is no GPU and a file of the user that was imported names one, take the CPU in this thread.

    `x.cuda()` in a branch that only evaluation takes says nothing on what is computed there.
    """
    if not _entered and not torch.cuda.is_available() and any(map(_names_gpu, _imported_files(sys.path[0] or ".", len(sys.modules)))):
        mode: Any = CpuInPlaceOfGpu()
        mode.__enter__()
        _entered.append(mode)
        make_legacy_types()


def make_legacy_types() -> None:
    """Let `torch.cuda.FloatTensor(…)` and its relatives make tensors on the CPU, for the rest of the process."""
    cuda: Any = torch.cuda
    for name in (f"{dtype}Tensor" for dtype in LEGACY_TYPES):
        setattr(cuda, name, _LegacyType(name, (), {"__module__": "torch.cuda"}))


@lru_cache(maxsize=1)  # a unit is made fifty times
def _imported_files(root: str, _modules: int) -> set[str]:
    roots = tuple(os.path.join(path, "") for path in {os.path.abspath(root), _resolved(root)})
    # There are thousands of modules: no path of theirs is resolved.
    files = {getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}
    return {file for file in files if file.endswith(".py") and file.startswith(roots)}


@cache
def _resolved(path: str) -> str:
    return os.path.realpath(path)


@cache
def _names_gpu(file: str) -> bool:
    try:
        text = Path(file).read_bytes()
    except OSError:
        return False
    return any(name.encode() in text for name in GPUS)
