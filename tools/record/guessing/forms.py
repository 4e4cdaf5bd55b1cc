"""Inputs of another form, as another construction asks for: other orders of axes, features in the place of ids. Used inside the sandbox."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from migrate_agent.tools.record.guessing.feedback import tensor_like
from migrate_agent.tools.record.guessing.values import text

IDENTITY = "torch.nn.Identity()"


def of_other_axes(arguments: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """The first tensor of a call, and all of its rank, as random numbers with the last axis second; then with the first two axes the other way round."""
    tensors = _tensors(arguments)
    first = next(iter(tensors.values()), None)
    if first is None or first.ndim < 3:
        return
    for order in ([0, -1, *range(1, first.ndim - 1)], [1, 0, *range(2, first.ndim)]):
        yield {
            name: text(replace(tensor_like(value), shape=tuple(value.shape[axis] for axis in order)))
            for name, value in tensors.items()
            if value.ndim == first.ndim
        }


def features(arguments: Mapping[str, Any], widths: Sequence[int]) -> Iterator[dict[str, str]]:
    """The first tensor of a call, where it holds ids, as features of one of these widths."""
    name, value = next(iter(_tensors(arguments).items()), ("", None))
    if value is not None and not value.is_floating_point() and not value.is_complex():
        for width in widths:
            yield {name: text(replace(tensor_like(value), shape=(*value.shape, width), kind="normal"))}


def without_modules(texts: Mapping[str, str], evaluate: Callable[[str], Any]) -> dict[str, str]:
    """Arguments of a constructor, with one that passes its input on in the place of each module."""
    import torch

    return {name: IDENTITY if isinstance(evaluate(value), torch.nn.Module) else value for name, value in texts.items()}


def _tensors(arguments: Mapping[str, Any]) -> dict[str, Any]:
    import torch

    return {name: value for name, value in arguments.items() if isinstance(value, torch.Tensor)}


LENGTHS: Mapping[int, str] = {1: "(64,)", 2: "(16, 64)", 3: "(3, 32, 32)", 4: "(3, 8, 32, 32)"}
"""How many sizes an input may have without its batch → such: a vector, a sequence, an image, a video."""


def of_other_lengths(values: Mapping[str, str], tree: ast.AST) -> Iterator[dict[str, str]]:
    """Other argument lists where code compares how many sizes an argument has, `len(obs_shape) == 3`: with as many as it asks about."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(
                left=ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name) | ast.Attribute(attr=name)]),
                ops=[ast.Eq() | ast.NotEq()],
                comparators=[ast.Constant(value=int(count))],
            ) if _is_sizes(values.get(name, "")) and count in LENGTHS:
                yield {**values, name: LENGTHS[count]}


def _is_sizes(text: str) -> bool:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    return isinstance(value, (tuple, list)) and bool(value) and all(type(item) is int for item in value)
