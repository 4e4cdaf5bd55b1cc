"""Values that a parameter accepts, read from the code that uses it: comparisons, tables, `getattr`, annotations."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, Literal, get_args, get_origin

from migrate_agent.tools.record.guessing.rows import CONFIGS

DEPTH = 2
"""How many functions a parameter is followed into."""
MOST = 6
NAMED = {"rnn": ("'LSTM'", "'GRU'"), "norm": ("'BatchNorm2d'", "'BatchNorm1d'"), "act": ("'ReLU'",), "pool": ("'MaxPool2d'",)}
"""What `getattr(torch.nn, name)` may look up, by what is in the parameter's name."""
LAYERS = {
    "Linear": "64, 64",
    "Conv1d": "64, 64, 3, padding=1",
    "Conv2d": "64, 64, 3, padding=1",
    "Conv3d": "64, 64, 3, padding=1",
    "Embedding": "64, 64",
    "LayerNorm": "64",
    "BatchNorm1d": "64",
    "BatchNorm2d": "64",
    "LSTM": "64, 64",
    "GRU": "64, 64",
}
"""Layers of torch that a constructor may ask for, and arguments to build them with."""


def choices(function: Callable[..., Any], parameter: inspect.Parameter) -> tuple[str, ...]:
    """Source texts of the values that a function compares `parameter` with or looks up by it, in the code's order.

    A `Literal` or `Enum` annotation takes precedence over the code. At most `MOST` texts.
    """
    annotated = list(_annotated_values(parameter.annotation))
    return tuple(dict.fromkeys(annotated or list(_compared_values(function, parameter.name, DEPTH))))[:MOST]


def _annotated_values(annotation: Any) -> Iterator[str]:
    """The values of a `Literal`, the members of an `Enum`."""
    if get_origin(annotation) is Literal:
        yield from (repr(value) for value in get_args(annotation))
    elif isinstance(annotation, str) and (match := re.search(r"Literal\[(.*?)\]", annotation)):
        yield from (ast.unparse(part) for part in ast.parse(f"[{match[1]}]", mode="eval").body.elts)  # type: ignore[attr-defined]
    elif isinstance(annotation, type) and issubclass(annotation, Enum):
        yield from (f"{annotation.__name__}.{member.name}" for member in annotation)
    elif isinstance(annotation, type):
        yield from _layers(annotation)


def _layers(layer_types: Any) -> Iterator[str]:
    """A layer of torch for each of the classes that a parameter must be an instance of."""
    for cls in layer_types if isinstance(layer_types, tuple) else (layer_types,):
        if getattr(cls, "__module__", "").startswith("torch.nn.modules") and cls.__name__ in LAYERS:
            yield f"torch.nn.{cls.__name__}({LAYERS[cls.__name__]})"


def _compared_values(function: Callable[..., Any], name: str, depth: int) -> Iterator[str]:
    code = inspect.unwrap(function)
    module_names = vars(sys.modules[code.__module__]) if getattr(code, "__module__", "") in sys.modules else {}
    module_names = {**module_names, **_owner_names(code, module_names)}
    for node in nodes_of(code):
        match node:
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[ast.Constant(value=str(word))]) if _is(left, name):
                yield repr(word)
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[table]) if _is(left, name):
                yield from _words(table, module_names)
            case ast.If():
                yield from _closed_numbers(node, name)
            case ast.Subscript(value=table, slice=key) if _is(key, name):
                yield from _words(table, module_names)
            case ast.Call(func=ast.Attribute(value=table, attr="get"), args=[key, *_]) if _is(key, name):
                yield from _words(table, module_names)
            case ast.Call(func=ast.Name(id="isinstance"), args=[left, ast.Tuple(elts=classes)]) if _is(left, name):
                yield from _layers(tuple(value_of_name(cls, module_names) for cls in classes))
            case ast.Call(func=ast.Name(id="isinstance"), args=[left, cls]) if _is(left, name):
                yield from _layers(value_of_name(cls, module_names))
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, key, *_]) if _is(key, name) and ast.unparse(owner).endswith("nn"):
                yield from (text for part, texts in NAMED.items() if part in name.lower() for text in texts)
            case ast.For(target=ast.Name(id=item), iter=read) if _is(read, name) and depth == DEPTH:
                words = list(dict.fromkeys(_compared_values(function, item, 1)))
                yield from [f"[{', '.join(words)}]"] if words else []
            case ast.Call(func=called, args=args, keywords=keywords) if depth > 1:
                yield from _values_in_callee(called, args, keywords, name, module_names, depth)


def _closed_numbers(branch: ast.If, name: str) -> Iterator[str]:
    """The integers that a chain of branches compares a name with, whose last branch raises: no other is accepted."""
    numbers: list[str] = []
    while True:
        match branch.test:
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[ast.Constant(value=int(number))]) if _is(left, name):
                numbers.append(repr(number))
            case _:
                return
        match branch.orelse:
            case [ast.If() as branch]:
                continue
            case [*_, ast.Raise()]:
                yield from numbers
        return


def _owner_names(function: Any, module_names: Mapping[str, Any]) -> dict[str, Any]:
    """What `self` and `cls` stand for in a method: the class, of which its own methods are read."""
    owner: Any = module_names.get(getattr(function, "__qualname__", "").partition(".")[0])
    return {"self": owner, "cls": owner} if isinstance(owner, type) else {}


def _values_in_callee(
    called: ast.expr, args: list[ast.expr], keywords: list[ast.keyword], name: str, module_names: Mapping[str, Any], depth: int
) -> Iterator[str]:
    """The values that a called function of the same program compares the parameter with."""
    positions = [at for at, arg in enumerate(args) if _is(arg, name)]
    named = [keyword.arg for keyword in keywords if keyword.arg and _is(keyword.value, name)]
    target = value_of_name(called, module_names) if positions or named else None
    if target is None or not callable(target):
        return
    try:
        parameters = list(inspect.signature(target).parameters)
    except (TypeError, ValueError):
        return
    if parameters[:1] == ["self"]:  # a method that was looked up on its class
        parameters = parameters[1:]
    for other in (*named, *(parameters[at] for at in positions if at < len(parameters))):
        yield from _compared_values(target, other, depth - 1)


def nodes_of(code: Any) -> Sequence[ast.AST]:
    """All nodes of the text of a function or class, breadth first; none where it cannot be read."""
    try:
        return _nodes(code)
    except TypeError:  # it cannot be a key
        return ()


@cache
def _nodes(code: Any) -> Sequence[ast.AST]:
    # What has no text is asked for as often as what has one, and looking for it takes longer.
    try:
        return tuple(ast.walk(ast.parse(textwrap.dedent(inspect.getsource(code)))))
    except (OSError, TypeError, SyntaxError):
        return ()


def _is(node: ast.expr, name: str) -> bool:
    """`name`, `self.name`, `config.name`, `name.lower()`."""
    match node:
        case ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr=found) if CONFIGS.fullmatch(owner):
            return found == name
        case ast.Call(func=ast.Attribute(value=inner, attr="lower" | "upper" | "strip"), args=[]):
            return _is(inner, name)
        case ast.Attribute(value=ast.Name(id="self"), attr=found) | ast.Name(id=found):
            return found == name
    return False


def _words(table: ast.expr, module_names: Mapping[str, Any]) -> Iterator[str]:
    """The constants of a container in the code, or the words that a container of the program holds."""
    match table:
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            yield from (repr(part.value) for part in parts if isinstance(part, ast.Constant))
        case ast.Dict(keys=keys):
            yield from (repr(key.value) for key in keys if isinstance(key, ast.Constant))
        case _:
            container = value_of_name(table, module_names)
            if isinstance(container, (list, tuple, set, frozenset, Mapping)):
                words = [repr(word) for word in container if isinstance(word, (str, int))]
                yield from sorted(words) if isinstance(container, (set, frozenset)) else words


def value_of_name(node: ast.expr, module_names: Mapping[str, Any]) -> Any:
    """What a dotted name stands for at the top of a module; of a class, its methods and class attributes."""
    if isinstance(node, ast.Name):
        return module_names.get(node.id)
    owner = value_of_name(node.value, module_names) if isinstance(node, ast.Attribute) else None
    if not isinstance(node, ast.Attribute) or not (inspect.ismodule(owner) or isinstance(owner, type)):
        return None
    return vars(owner).get(node.attr) if inspect.ismodule(owner) else getattr(owner, node.attr, None)
