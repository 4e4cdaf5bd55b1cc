"""The modules that an `nnx.Optimizer` of a candidate updates: one, or several that something holds. Runs inside the sandbox."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Shapes = Mapping[str, tuple[int, ...]]
"""Torch's name of a parameter or buffer → its shape there."""


def held_modules(model: Any, states: Sequence[Shapes]) -> list[Any]:
    """What an optimizer over `model` updates in terms of the original, whose next modules have these `states`: the module itself, the one that it is a
    part of, or those that a tuple, a dictionary or a module without parameters of its own holds, in their order.
    """
    from flax import nnx

    own = shapes(model)
    if not states or own == states[0]:
        return [model]
    rest, chosen = [child for child in _children(model) if shapes(child)], list[Any]()
    for state in states:
        match = next((child for child in rest if shapes(child) == state), None)
        if match is None:
            break
        rest = [child for child in rest if child is not match]
        chosen.append(match)
    count = sum(len(shapes(one)) for one in chosen)
    if chosen and not rest and (len(own) == count or not isinstance(model, nnx.Module)):
        return chosen
    return [next(_around(model, states[0]), model)]


def _around(model: Any, state: Shapes) -> Iterator[Any]:
    """The modules with a state that `model` is a part of."""
    from flax import nnx

    for one in [item for item in gc.get_objects() if issubclass(type(item), nnx.Module)]:
        if shapes(one) == state and any(part is model for _, part in nnx.iter_graph(one)):
            yield one


def shapes(model: Any) -> dict[str, tuple[int, ...]]:
    """The shapes of a module, by torch's names; empty for anything else."""
    from flax import nnx

    from migrate_agent.tools.weights import StateDictError, leaves

    try:
        return {name: tuple(leaf.shape) for name, leaf in leaves(model).items()} if isinstance(model, nnx.Module) else {}
    except StateDictError:
        return {}


def _children(item: Any) -> Iterator[Any]:
    """The modules that a container holds, or a module beside what belongs to it."""
    from flax import nnx

    if isinstance(item, Mapping):
        values = list(item.values())
    elif isinstance(item, (list, tuple, nnx.List)):
        values = list(item)
    else:
        values = list(vars(item).values()) if isinstance(item, nnx.Module) else []
    for value in values:
        if isinstance(value, (Mapping, list, tuple, nnx.List, nnx.Dict)):
            yield from _children(value)
        elif isinstance(value, nnx.Module):
            yield value
