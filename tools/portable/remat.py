"""Recomputes repeated blocks in the backward pass: wraps the calls of their classes in `jax.checkpoint`. Used inside the sandbox."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
from flax import nnx


class NothingRepeats(ValueError):
    """The module holds no list of equal blocks."""


@contextmanager
def checkpoint_blocks(model: Any) -> Iterator[None]:
    """Inside the context, calls of the blocks store only their inputs for the backward pass. Raises `NothingRepeats`."""
    classes = repeated_classes(model)
    if not classes:
        raise NothingRepeats("no class of modules stands in a list twice, so there is no block to checkpoint")
    own: dict[Any, Callable[..., Any]] = {cls: cls.__call__ for cls in classes}
    for cls, call in own.items():
        cls.__call__ = _recompute(call)
    try:
        yield
    finally:
        for cls, call in own.items():
            cls.__call__ = call


def repeated_classes(model: Any) -> list[Any]:
    """Classes with two or more instances in lists, outermost first, without those inside of other such classes."""
    classes = {path: type(module) for path, module in nnx.iter_modules(model)}
    listed = {path: cls for path, cls in classes.items() if path and isinstance(path[-1], int)}
    counts = Counter(listed.values())
    outer = [
        path
        for path, cls in listed.items()
        if counts[cls] > 1
        and any(other[: len(path)] == path and other != path for other in classes)
        and not _inside_repeated(path, listed, counts)
    ]
    return list(dict.fromkeys(listed[path] for path in outer))


def _inside_repeated(path: tuple[Any, ...], listed: dict[Any, Any], counts: Counter[Any]) -> bool:
    return any(path[:end] in listed and counts[listed[path[:end]]] > 1 for end in range(1, len(path)))


def _recompute(call: Callable[..., Any]) -> Callable[..., Any]:
    def recomputed(self: Any, *args: Any, **kwargs: Any) -> Any:
        # `jax.checkpoint` takes pure functions, so the module's state goes in and comes out.
        graphdef, state = nnx.split(self)
        leaves, structure = jax.tree.flatten((args, kwargs))
        traced = [index for index, leaf in enumerate(leaves) if isinstance(leaf, jax.Array)]

        def pure(state: Any, arrays: list[Any]) -> Any:
            values = list(leaves)
            for index, value in zip(traced, arrays, strict=True):
                values[index] = value
            args, kwargs = jax.tree.unflatten(structure, values)
            module = nnx.merge(graphdef, state)
            result = call(module, *args, **kwargs)
            return result, nnx.state(module)

        result, after = jax.checkpoint(pure)(state, [leaves[index] for index in traced])
        nnx.update(self, after)
        return result

    return recomputed
