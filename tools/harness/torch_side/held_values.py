"""Arrays and numbers that a module keeps in plain attributes, beside its parameters and buffers: an inverse that a method stores, a map of attention for
whoever draws it. Used inside the sandbox, on the original's side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

NO_VALUES = frozenset(vars(torch.nn.Module()))
"""What every module has: its parts, hooks and mode."""
MOST = 32
"""Values of one module that are kept."""
MOST_ELEMENTS = 65_536
"""Elements of an array that a call found and left as it was, at most."""
MOST_ITEMS = 16
DEPTH = 2
"""So many items of a container, and so many containers in each other, are looked at."""
Held = Mapping[str, Any]
"""Dotted path (of the module, the attribute, and the items of a list or dictionary in it) → tensor or number."""


def held_values(module: torch.nn.Module, hidden: bool = False) -> Held:
    """What the public attributes of the user's own classes hold (with `hidden`, all of theirs), buffers that are in no state among it."""
    by_path: dict[str, Any] = {}
    for path, part in module.named_modules():
        if type(part).__module__.startswith("torch.") or hasattr(type(part), "function"):
            continue
        unsaved = {name: part._buffers[name] for name in part._non_persistent_buffers_set}
        for name, value in {**vars(part), **unsaved}.items():
            if (hidden or not name.startswith("_")) and name not in NO_VALUES and not _is_generator_state(value):
                by_path |= _items(value, f"{path}.{name}" if path else name, DEPTH)
    return by_path


def _is_generator_state(value: Any) -> bool:
    """Whether this is what `torch.get_rng_state()` gives: JAX's keys have no such state, and what is drawn after it is compared."""
    return isinstance(value, torch.Tensor) and value.dtype is torch.uint8 and value.shape == torch.get_rng_state().shape


def noted(values: Held) -> dict[str, tuple[Any, int]]:
    """Path → the value itself, and how often it was changed in place so far."""
    return {path: (value, getattr(value, "_version", 0)) for path, value in values.items()}


def parted(values: Held, before: Mapping[str, tuple[Any, int]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values that a call left behind, new or changed, and the arrays that it left as they were; `before` is what was `noted` then."""
    some = dict(list(values.items())[:MOST])
    new = {path: value for path, value in some.items() if path not in before or _changed(value, *before[path])}
    old = {path: value for path, value in some.items() if path not in new and isinstance(value, torch.Tensor)}
    return new, {path: value for path, value in old.items() if value.numel() <= MOST_ELEMENTS}


def spoil(module: torch.nn.Module, before: Mapping[str, tuple[Any, int]]) -> None:
    """Change the floating arrays that a call left behind in attributes: a call that gives something else then reads them."""
    values = held_values(module, hidden=True)
    with torch.no_grad():
        for path, value in values.items():
            if isinstance(value, torch.Tensor) and value.is_floating_point() and (path not in before or _changed(value, *before[path])):
                value.mul_(1.5).add_(0.25)


def _changed(value: Any, old: Any, version: int) -> bool:
    if isinstance(value, torch.Tensor):
        return value is not old or value._version != version
    return type(value) is not type(old) or value != old


def _items(value: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, torch.Tensor) or type(value) in (int, float):
        yield path, value
    elif depth and isinstance(value, (list, tuple)) and len(value) <= MOST_ITEMS:
        for number, item in enumerate(value):
            yield from _items(item, f"{path}.{number}", depth - 1)
    elif depth and isinstance(value, dict) and len(value) <= MOST_ITEMS:
        for key, item in value.items():
            if isinstance(key, (str, int)):
                yield from _items(item, f"{path}.{key}", depth - 1)
