"""Texts that build what a parameter takes where it is an object of the repository: a configuration, a module, a dictionary by its keys."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Any

from migrate_agent.tools.record.guessing.choices import choices, nodes_of, value_of_name
from migrate_agent.tools.record.guessing.rows import CONFIGS, annotation_text, parameter_texts
from migrate_agent.tools.record.guessing.trial import parameters, required
from migrate_agent.tools.record.guessing.values import Fields, Value

DEPTH = 2
"""How deep constructors are nested in the text of one argument."""
HANDED = 3
"""Through how many constructors a configuration is followed."""


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


def accessed(cls: Any, name: str, settings: Mapping[str, str] = MappingProxyType({})) -> Fields | None:
    """What the class, and what it hands the parameter on to, read of it by name: `config.width` of an object, `config["width"]` of a dictionary;
    `None` where nothing. `settings`: their texts by name."""
    attributes: dict[str, None] = {}
    keys: dict[str, None] = {}
    holders = list(handed_on(cls, name, HANDED))
    for holder, own_name in holders:
        names = {own_name, *aliases(holder, own_name)}
        for node in nodes_of(holder):
            match node:
                case ast.Subscript(value=owner, slice=ast.Constant(value=str(key))) if is_any(owner, names):
                    keys[key] = None
                case ast.Call(func=ast.Attribute(value=owner, attr="get"), args=[ast.Constant(value=str(key)), *_]) if is_any(owner, names):
                    keys[key] = None
                case ast.Attribute(value=owner, attr=attribute, ctx=ast.Load()) if is_any(owner, names):
                    attributes[attribute] = None
    if keys:
        return Fields(tuple((key, _value(key, holders, settings)) for key in keys), "dict")
    if attributes and (CONFIGS.fullmatch(name) or not attributes.keys() & TENSOR_NAMES):
        return Fields(tuple((key, _value(key, holders, settings)) for key in attributes), "namespace")
    return None


def handed_on(holder: Any, name: str, depth: int) -> Iterator[tuple[Any, str]]:
    """A class or function with the name of its parameter, and those of the same program to whose constructors it hands that whole."""
    yield holder, name
    module_names = vars(sys.modules[holder.__module__]) if getattr(holder, "__module__", "") in sys.modules else {}
    names = {name, *aliases(holder, name)}
    for node in nodes_of(holder):
        if depth and isinstance(node, ast.Call) and any(is_any(value, names) for value in (*node.args, *(k.value for k in node.keywords))):
            called = value_of_name(node.func, module_names)
            if (inspect.isclass(called) or inspect.isfunction(called)) and called is not holder:
                for other in taken_as(called, node, names):
                    yield from handed_on(called, other, depth - 1)
    for base in getattr(holder, "__bases__", ()):
        if depth and name in {item.name for item in parameters(base)} and not base.__module__.startswith("torch."):
            yield from handed_on(base, name, depth - 1)


def taken_as(called: Any, call: ast.Call, names: Collection[str]) -> Iterator[str]:
    """The parameters of what is called that a call hands one of these names to."""
    order = [item.name for item in parameters(called)]
    starred = next((at for at, argument in enumerate(call.args) if isinstance(argument, ast.Starred)), len(call.args))
    yield from (order[at] for at, argument in enumerate(call.args[:starred]) if at < len(order) and is_any(argument, names))
    yield from (keyword.arg for keyword in call.keywords if keyword.arg and is_any(keyword.value, names))


def aliases(holder: Any, name: str) -> list[str]:
    """Other names of a parameter: of the attribute or variable that it is kept in."""
    others: list[str] = []
    for node in nodes_of(holder):
        match node:
            case ast.Assign(targets=[ast.Name(id=other) | ast.Attribute(value=ast.Name(id="self"), attr=other)], value=ast.Name(id=value)):
                others += [other] if value == name else []
    return others


TENSOR_NAMES = frozenset(
    "shape size view reshape dim device dtype permute transpose mean sum unsqueeze squeeze to ndim forward parameters".split()
)
"""Attributes that say that a value is a tensor or a module."""


def _value(name: str, holders: Sequence[tuple[Any, str]], settings: Mapping[str, str]) -> Value:
    """The text of a setting: as the repository has it, as the code compares it, as its name suggests."""
    if name in settings:
        return settings[name]
    field = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
    compared = [text for holder, _ in holders for text in choices(holder, field)]
    return (compared or parameter_texts(name, ""))[0]


def is_any(node: ast.expr, names: Collection[str]) -> bool:
    """Whether a node is one of these names, or an attribute of `self` that is called so."""
    match node:
        case ast.Name(id=found) | ast.Attribute(value=ast.Name(id="self"), attr=found):
            return found in names
    return False
