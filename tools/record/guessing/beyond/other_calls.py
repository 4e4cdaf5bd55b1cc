"""Other argument lists of a call, by its parameters, its values and what code asks of them."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any

from migrate_agent.tools.harness.common.trees import is_collection_class, is_own_class
from migrate_agent.tools.record.guessing.arguments import Call, first_samples
from migrate_agent.tools.record.guessing.configs import object_texts
from migrate_agent.tools.record.guessing.distinctions import (
    asked_containers,
    compares_ranks,
)

BOOLEAN = re.compile(r"mask|pad|valid|keep")
WHOLE = re.compile(
    r"^(t|time\w*|timesteps?|step\w*|ids?|\w*_ids?|pos\w*|label\w*|target\w*|index|\w*_index|indices|len\w*|\w*_lens?|classes)$"
)
SCALARS = ("1", "0.5", "True")
ONE_NUMBER = "torch.ones(1)"
"""A tensor that may be a condition: those of more numbers may not."""


def others(
    call: Call,
    parameters: Sequence[inspect.Parameter],
    shape: Sequence[int] | None,
    widths: Sequence[int] = (),
    changed: Sequence[inspect.Parameter] | None = None,
    conditions: Collection[str] = (),
    objects: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Iterator[dict[str, str]]:
    """Other argument lists of a call: each optional argument left out, and each that is None given. `shape` is that of its first tensor [*]. With
    `changed`, of these parameters alone. `conditions` are the arguments that code takes for conditions as they are, and `objects` texts of those that are
    objects of the repository."""
    plain = [parameter for parameter in parameters if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)]
    values = call.by_name([parameter.name for parameter in plain if parameter.kind is parameter.POSITIONAL_OR_KEYWORD])
    plain = [parameter for parameter in plain if changed is None or parameter in changed]
    for parameter in plain:
        if parameter.default is not parameter.empty and parameter.name in values and values[parameter.name] != repr(parameter.default):
            yield {name: value for name, value in values.items() if name != parameter.name}
    for parameter in plain:
        if isinstance(parameter.default, bool):
            yield {**values, parameter.name: str(not parameter.default)}
    for parameter in plain:
        if parameter.default is None and values.get(parameter.name, "None") == "None":
            tensors = [*([ONE_NUMBER] if shape and parameter.name in conditions else []), *guesses(parameter.name, shape, widths)]
            for text in objects.get(parameter.name, tensors):
                yield {**values, parameter.name: text}


def of_other_ranks(values: Mapping[str, str], arguments: Mapping[str, Any], tree: ast.AST) -> Iterator[dict[str, str]]:
    """Other argument lists where code compares how many axes something has: all tensors without their first axis, or with one more, then the first
    tensor alone. `arguments` are what the first of the `values` stand for."""
    import torch

    tensors = [name for name, value in arguments.items() if isinstance(value, torch.Tensor)]
    if not tensors or not compares_ranks(tree):
        return
    for axis in ("0", "None"):
        for chosen in dict.fromkeys((tuple(tensors), tuple(tensors[:1]))):
            if axis == "None" or all(arguments[name].ndim > 1 for name in chosen):
                yield {**values, **{name: ast.unparse(ast.parse(f"({values[name]})[{axis}]")) for name in chosen}}


def of_one_sample(
    values: Mapping[str, str], arguments: Mapping[str, Any], parameters: Sequence[inspect.Parameter]
) -> Iterator[dict[str, str]]:
    """Other argument lists with a switch turned and the first sample of all tensors alone, as streaming code and samplers ask for."""
    alone = first_samples(values, arguments)
    for parameter in parameters:
        if alone and isinstance(parameter.default, bool):
            yield {**values, **alone, parameter.name: str(not parameter.default)}


def objects_asked(parameters: Sequence[inspect.Parameter], names: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Parameter → texts that build what its annotation asks for, where that is a plain class of the repository that these names of a file hold."""
    collections = {name for name, value in names.items() if isinstance(value, type) and is_collection_class(value)}
    classes = {name: value for name, value in names.items() if isinstance(value, type) and (is_own_class(value) or name in collections)}
    texts = dict[str, tuple[str, ...]]()
    for parameter in parameters:
        words = re.findall(r"\w+", str(parameter.annotation)) if parameter.annotation is not parameter.empty else []
        chosen = next((name for name in words if name in classes), None)
        if chosen in collections:
            texts[parameter.name] = (f"{chosen}()",)
            continue
        with suppress(TypeError, ValueError):  # a class whose constructor has no signature
            if chosen is not None and (built := object_texts(classes[chosen], chosen, classes)):
                texts[parameter.name] = built
    return texts


def in_other_containers(values: Mapping[str, str], tree: ast.AST) -> Iterator[dict[str, str]]:
    """Other argument lists where code asks whether an argument is a list or a tuple: of a list its first element alone, and else a list of one."""
    for name in values:
        if name in asked_containers(tree):
            yield {**values, name: first_element(values[name]) or f"[{values[name]}]"}


def first_element(text: str) -> str:
    """The text of the first element of a list or a tuple; "" of others."""
    literal = ast.parse(text, mode="eval").body
    return ast.unparse(literal.elts[0]) if isinstance(literal, (ast.List, ast.Tuple)) and literal.elts else ""


def guesses(name: str, shape: Sequence[int] | None, widths: Sequence[int] = ()) -> list[str]:
    """Texts of values for an optional argument, likeliest first, by its name and the shape of the first tensor of the call."""
    if not shape:
        return list(SCALARS)
    batch, last = shape[:1], shape[-1:]
    if BOOLEAN.search(name):
        length = shape[1:2] or batch
        square = [*length, *length]
        sizes = [
            shape[:2],
            shape[:-1],
            square,
            [*batch, *batch],
            [*batch, 1, *square],
            [*batch, 1, 1, *length],
            [*batch, *square],
            shape,
            batch,
        ]
        return [f"torch.ones({_size(size)}, dtype=torch.bool)" for size in _different(sizes)]
    if WHOLE.search(name):
        texts = [_size(size) for size in _different([batch, shape[:2], shape[1:2] or batch, shape])]
        # Times need not be whole, and code may divide by them.
        return [*(f"torch.randint(0, 2, {text})" for text in texts), *SCALARS, *(f"torch.rand({text}) + 0.5" for text in texts)]
    sizes = [shape, shape[:-1], last, batch, [*batch, *last], [*shape[:-1], 1]]
    sizes += [size for width in widths for size in ([width], [*batch, width], [*shape[:-1], width])]
    return [*(f"torch.randn({_size(size)})" for size in _different(sizes)), *SCALARS]


def _different(sizes: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    return list(dict.fromkeys(tuple(size) for size in sizes if size))


def _size(size: Sequence[int]) -> str:
    return f"({', '.join(map(str, size))}{',' if len(size) == 1 else ''})"
