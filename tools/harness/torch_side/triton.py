"""Runs Triton kernels of the original in float64, on a machine without a GPU (see `example_text.interpret_triton`)."""

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
"""A name for the language itself in a kernel's file: the interpreter looks for it among the file's names."""


class Wide(ModuleType):
    """Stands in for `triton.language` in the user's files: narrow float dtypes (`tl.float32`) are float64."""

    def __init__(self, language: ModuleType) -> None:
        super().__init__(LANGUAGE)
        self.language = language

    def __getattr__(self, name: str) -> Any:
        return getattr(self.language, "float64" if name in NARROW else name)


@contextmanager
def wide_kernels() -> Iterator[None]:
    """Have interpreted kernels compute in float64, in user files that bind the language as a module (`tl`)."""
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
    """The namespace of each imported file of the user."""
    root = Path(sys.path[0]).resolve()
    files = [module for module in list(sys.modules.values()) if getattr(module, "__file__", None)]
    return [vars(module) for module in files if Path(str(module.__file__)).is_relative_to(root)]
