"""Notes the weights that modules of torch begin with, so that those of the rewrite can begin with them. Runs inside the sandbox.

What a script does before it has an optimizer may show them: it saves them, evaluates with them, or makes a copy.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

MOST_MODULES = 64


def watch_made_modules(made: Callable[[Any], None]) -> None:
    """Let `made` get each module that is constructed from here on and is no part of another one's construction, the first `MOST_MODULES`."""
    import torch

    inside, count = [False], [0]

    def watched(own: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(own)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            if inside[0] or count[0] >= MOST_MODULES:
                own(self, *args, **kwargs)
                return
            inside[0] = True
            try:
                own(self, *args, **kwargs)
            finally:
                inside[0] = False
            if next(_states(self), None) is not None:
                count[0] += 1
                made(self)

        return __init__

    def watch(cls: Any) -> None:
        if "__init__" in vars(cls):
            cls.__init__ = watched(vars(cls)["__init__"])

    base: Any = torch.nn.Module
    todo = [base]
    seen = set()
    while todo:
        cls = todo.pop()
        if cls not in seen:
            seen.add(cls)
            todo += cls.__subclasses__()
            if cls is not base:
                watch(cls)
    own = base.__init_subclass__

    def __init_subclass__(cls: Any, /, **kwargs: Any) -> None:
        own(**kwargs)
        watch(cls)

    base.__init_subclass__ = classmethod(__init_subclass__)


def _states(module: Any) -> Iterator[Any]:
    """The parameters and buffers of a module."""
    yield from module.parameters()
    yield from module.buffers()
