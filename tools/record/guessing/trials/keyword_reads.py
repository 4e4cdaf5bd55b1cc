"""Arguments that a constructor takes by `**kwargs` and reads by their names: `kwargs.get("width", 64)`, `kwargs["width"]`, `kwargs.pop("width")`."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from migrate_agent.tools.record.guessing.choices import nodes_of, value_of_name

HANDED = 3
"""Through how many constructors they are followed."""
NONE = inspect.Parameter.empty


def parameters_read(cls: type, name: str) -> list[inspect.Parameter]:
    """What a class and its bases read of the keywords `name` of its constructor: with the default that is written beside, or as needed."""
    read_parameters: dict[str, inspect.Parameter] = {}
    for key, default in _reads(vars(cls).get("__init__"), name, cls, HANDED):
        if key not in read_parameters or read_parameters[key].default is NONE:
            read_parameters[key] = inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default)
    return [one for one in read_parameters.values() if one.name.isidentifier()]


def _reads(constructor: Any, name: str, cls: type, depth: int) -> Iterator[tuple[str, Any]]:
    names = vars(sys.modules[cls.__module__]) if cls.__module__ in sys.modules else {}
    for node in nodes_of(constructor) if inspect.isfunction(constructor) else ():
        match node:
            case ast.Subscript(value=ast.Name(id=read), slice=ast.Constant(value=str(key)), ctx=ast.Load()) if read == name:
                yield key, NONE
            case ast.Call(func=ast.Attribute(value=ast.Name(id=read), attr="get" | "pop"), args=[ast.Constant(value=str(key)), *rest]) if (
                read == name
            ):
                yield key, _literal(rest[0]) if rest else NONE
            case ast.Call() if depth and any(one.arg is None and is_name(one.value, name) for one in node.keywords):
                for other, inner in _handed(node, cls, names):
                    yield from _reads(vars(other).get("__init__"), inner, other, depth - 1)


def _handed(call: ast.Call, cls: type, names: Mapping[str, Any]) -> Iterator[tuple[type, str]]:
    """The classes whose constructor a call hands all keywords, and what they call them: `Part(**kwargs)`, `Base.__init__(self, **kwargs)`."""
    match call.func:
        case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr="__init__"):
            others = [base for base in cls.__mro__[1:] if "__init__" in vars(base)][:1]
        case ast.Attribute(value=owner, attr="__init__"):
            others = [value_of_name(owner, names)]
        case function:
            others = [value_of_name(function, names)]
    for other in others:
        if inspect.isclass(other) and inspect.isfunction(vars(other).get("__init__")) and not other.__module__.startswith("torch."):
            signature = inspect.signature(vars(other)["__init__"]).parameters.values()
            yield from ((other, one.name) for one in signature if one.kind is one.VAR_KEYWORD)


def _literal(node: ast.expr) -> Any:
    """A default that is written out; of any other nothing is known but that it is there."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def is_name(node: ast.expr, name: str) -> bool:
    """Whether an expression is this name."""
    return isinstance(node, ast.Name) and node.id == name
