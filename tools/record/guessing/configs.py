"""Texts that build what a parameter takes where it is an object of the repository: a configuration, a module, a dictionary by its keys."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from migrate_agent.tools.record.guessing.rows import annotation_text, parameter_texts
from migrate_agent.tools.record.guessing.trial import parameters, required
from migrate_agent.tools.record.guessing.values import Fields, Value

DEPTH = 2
"""How deep constructors are nested in the text of one argument."""


def object_texts(cls: Any, name: str, classes: Mapping[str, Any], depth: int = DEPTH) -> tuple[str, ...]:
    """Texts that build an instance of a class: with small sizes, and with its defaults."""
    if isinstance(cls, type) and issubclass(cls, Enum):
        return tuple(f"{name}.{member.name}" for member in cls)
    if dataclasses.is_dataclass(cls):
        return _dataclass_texts(cls, name, classes, depth)
    parts = []
    for parameter in required(parameters(cls)):
        inner = annotation_text(parameter.annotation).strip("'\"")
        texts = object_texts(classes[inner], inner, classes, depth - 1) if inner in classes and depth else ()
        texts = texts or parameter_texts(parameter.name, inner)
        parts.append(f"{parameter.name}={texts[0]}")
    return (f"{name}({', '.join(parts)})",)


def _dataclass_texts(cls: Any, name: str, classes: Mapping[str, Any], depth: int) -> tuple[str, ...]:
    small = []
    for field in (field for field in dataclasses.fields(cls) if field.init):
        needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        whole = isinstance(field.default, int) and not isinstance(field.default, bool) and field.default > 8
        inner = annotation_text(field.type).strip("'\"")
        if needed and inner in classes and depth:
            small.append(f"{field.name}={object_texts(classes[inner], inner, classes, depth - 1)[0]}")
        elif needed or whole:
            small.append(f"{field.name}={parameter_texts(field.name, 'int' if whole else inner)[0]}")
    return tuple(dict.fromkeys((f"{name}({', '.join(small)})", f"{name}()")))


def accessed(cls: type, name: str) -> Fields | None:
    """What the class reads of a parameter by name: `config.width` of an object, `config["width"]` of a dictionary; `None` where nothing."""
    attributes: dict[str, None] = {}
    keys: dict[str, None] = {}
    for node in _class_nodes(cls):
        match node:
            case ast.Subscript(value=owner, slice=ast.Constant(value=str(key))) if _is(owner, name):
                keys[key] = None
            case ast.Call(func=ast.Attribute(value=owner, attr="get"), args=[ast.Constant(value=str(key)), *_]) if _is(owner, name):
                keys[key] = None
            case ast.Attribute(value=owner, attr=attribute, ctx=ast.Load()) if _is(owner, name):
                attributes[attribute] = None
    if keys:
        return Fields(tuple((key, _value(key)) for key in keys), "dict")
    if attributes and not attributes.keys() & TENSOR_NAMES:
        return Fields(tuple((key, _value(key)) for key in attributes), "namespace")
    return None


TENSOR_NAMES = frozenset(
    "shape size view reshape dim device dtype permute transpose mean sum unsqueeze squeeze to ndim forward parameters".split()
)
"""Attributes that say that a value is a tensor or a module."""


def _value(name: str) -> Value:
    return parameter_texts(name, "")[0]


def _is(node: ast.expr, name: str) -> bool:
    match node:
        case ast.Name(id=found) | ast.Attribute(value=ast.Name(id="self"), attr=found):
            return found == name
    return False


def _class_nodes(cls: type) -> Iterator[ast.AST]:
    try:
        yield from ast.walk(ast.parse(textwrap.dedent(inspect.getsource(cls))))
    except (OSError, TypeError, SyntaxError):
        return
