"""Lets files be imported that compile a C++ or CUDA extension, where this machine cannot compile it. Used inside the sandbox, on the original's side.

Code that has another way for the CPU never asks for the extension. Code that does ask gets the error with which compiling ended.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

MODULE = "torch.utils.cpp_extension"
LOADERS = ("load", "load_inline")


class MissingExtension(ModuleType):
    """Stands for an extension that could not be compiled. Its functions are there, and raise the reason when they are called."""

    def __init__(self, name: str, error: BaseException) -> None:
        super().__init__(name)
        self.__dict__["_error"] = error

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def fail(*args: Any, **kwargs: Any) -> Any:
            error = self.__dict__["_error"]
            raise RuntimeError(f"the extension {self.__name__} could not be compiled here: {type(error).__name__}: {error}") from error

        return fail


def spare_extensions() -> bool:
    """From now on, `torch.utils.cpp_extension.load` and `load_inline` give a `MissingExtension` where they fail.

    Returns whether that is new, and matters: some file has imported torch's module by now.
    """
    module: Any = sys.modules.get(MODULE)
    if module is None or isinstance(module.load, functools.partial):
        return False
    for name in LOADERS:
        setattr(module, name, functools.partial(_loaded, getattr(module, name)))
    return True


def _loaded(own: Callable[..., Any], name: str, *args: Any, **options: Any) -> Any:
    import torch

    sources = (args[0] if args else options.get("sources", ())) or ()
    needs_gpu = options.get("with_cuda") or options.get("cuda_sources") or any(str(source).endswith(".cu") for source in _listed(sources))
    if needs_gpu and not torch.cuda.is_available():
        return MissingExtension(name, OSError("it has CUDA sources, and there is no GPU"))
    try:
        return own(name, *args, **options)
    except Exception as error:
        return MissingExtension(name, error)


def _listed(sources: Any) -> list[Any]:
    return [sources] if isinstance(sources, str) else list(sources)
