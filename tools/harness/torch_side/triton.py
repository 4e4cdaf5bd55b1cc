"""Triton kernels of the original in float64. On a machine without a GPU they run in Triton's interpreter (`record.evaluate.interpret_triton`)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

LANGUAGE = "triton.language"
NARROW = ("float32", "float16", "bfloat16")
KEPT = "_triton_language"
"""The interpreter looks for the language itself among the names of a kernel's file."""


class Wide(ModuleType):
    """Stands in for `triton.language` in files of the user: what a kernel accumulates in, `tl.float32`, is float64."""

    def __init__(self, language: ModuleType) -> None:
        super().__init__(LANGUAGE)
        self.language = language

    def __getattr__(self, name: str) -> Any:
        return getattr(self.language, "float64" if name in NARROW else name)


@contextmanager
def wide_kernels() -> Iterator[None]:
    """Interpreted kernels of the user's files, which name the language as a module (`tl`), take narrow floats for float64."""
    language = sys.modules.get(LANGUAGE)
    if language is None:
        yield
        return
    wide = Wide(language)
    changed = [(names, name) for names in _users() for name, value in list(names.items()) if value is language and name != KEPT]
    for names, name in changed:
        names[KEPT], names[name] = language, wide
    try:
        yield
    finally:
        for names, name in changed:
            names[name] = language


def _users() -> list[dict[str, Any]]:
    """The names of each file of the user's that was imported."""
    root = Path(sys.path[0]).resolve()
    files = [module for module in list(sys.modules.values()) if getattr(module, "__file__", None)]
    return [vars(module) for module in files if Path(str(module.__file__)).is_relative_to(root)]
