"""Modules of a program that are parts of others: an optimizer has the parameters of one, and the loss calls the other.

net = UNet()
optimizer = Adam(net.parameters())
trainer = DiffusionLoss(net)          `net` is `trainer.model`
loss = trainer(images)
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

WRAPPERS = {"DataParallel": "module", "DistributedDataParallel": "module", "OptimizedModule": "_orig_mod"}
"""Class → the attribute of a module that one only wraps, and which stands for it in a rewrite."""


@dataclass(frozen=True)
class Contained:
    """A module that is a part of another, by the names that one function has for both.

    `path` are the attributes that lead from `whole` to `part`; none where they are one module. `alone`: `whole` has no other parameters.
    """

    whole: str
    part: str
    path: tuple[str, ...]
    alone: bool


def watch_contained(root: Path) -> list[Contained]:
    """A list that gets the modules which are parts of others where code below `root` makes the first step of an optimizer."""
    rows: list[Contained] = []
    stepped: set[int] = set()

    def note(optimizer: Any, args: Any, kwargs: Any) -> None:
        if id(optimizer) in stepped:
            return
        stepped.add(id(optimizer))
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename.startswith(str(root)):
                rows.extend(row for row in contained({**frame.f_globals, **frame.f_locals}) if row not in rows)
            frame = frame.f_back

    hooks: Any = importlib.import_module("torch.optim.optimizer")
    hooks.register_optimizer_step_post_hook(note)
    return rows


def contained(names: dict[str, Any]) -> Iterator[Contained]:
    """The modules among these names, and attributes of `self`, that are parts of others."""
    modules = dict(_modules(names))
    for whole, module in modules.items():
        paths = {id(part): path for part, path in reversed(list(_parts(module, ())))}
        sizes = len(list(module.parameters()))
        for part, other in modules.items():
            path = paths.get(id(other))
            if whole != part and path is not None and all(name.isidentifier() for name in path):
                yield Contained(whole, part, path, len(list(other.parameters())) == sizes)


def _modules(names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The names that hold modules with parameters."""
    import torch

    own = names.get("self")
    attributes = {**getattr(own, "__dict__", {}), **getattr(own, "__dict__", {}).get("_modules", {})}
    for name, value in [*names.items(), *((f"self.{name}", value) for name, value in attributes.items())]:
        # Asked by `isinstance`, what stands for another object answers for that.
        if issubclass(type(value), torch.nn.Module) and next(value.parameters(), None) is not None:
            yield name, value


def _parts(module: Any, path: tuple[str, ...]) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """A module and all its parts, with the attributes that lead to each."""
    yield module, path
    for name, child in module.named_children():
        yield from _parts(child, path if WRAPPERS.get(type(module).__name__) == name else (*path, name))
