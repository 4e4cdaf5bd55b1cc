"""Scan and plan: the files and module classes of a repository, their strategies, and the order of work. Reads syntax only.

`walk` lists the files. `layout` gives their module names and the places of their mirrors. `facts` reads
one file and `survey` all of them. `exports` and `names` resolve names (the recorder and the rewriter
use them too). `graph` says which definition uses which. `detectors` is the table of code that is no
model maths; `strategy` and `findings` apply it. `inventory` assembles the result, and `plan` orders it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from migrate_agent.tools.scan.inventory import scan

__all__ = ["scan"]


def __getattr__(name: str) -> Any:
    """What the rooms above ask for, imported then: jobs in the sandbox read syntax alone, and need no graph."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.inventory"), name)
