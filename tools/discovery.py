"""Imports the modules below a package, so that a new row or rule needs no central list."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType


def modules_below(package: str) -> Iterator[ModuleType]:
    """Import and yield every module below `package` (dotted name), subpackages included, ordered by the last part of its name."""
    root = importlib.import_module(package)
    names = [info.name for info in pkgutil.walk_packages(root.__path__, prefix=f"{package}.") if not info.ispkg]
    for name in sorted(names, key=lambda name: (name.rpartition(".")[2], name)):
        yield importlib.import_module(name)
