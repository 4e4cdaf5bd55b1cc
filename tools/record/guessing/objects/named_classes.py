"""Objects whose class code asks for by its name: `space.__class__.__name__ == "Discrete"`, `isinstance(space, spaces.Box)`. Used inside the sandbox."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from migrate_agent.tools.record.guessing.choices import nodes_of, value_of_name
from migrate_agent.tools.record.guessing.reads import Holder, aliases, handed_on, names_around, reads_of
from migrate_agent.tools.record.guessing.rows import parameter_texts

SPACES: Mapping[str, str] = {
    "Box": "-1.0, 1.0, (8,)",
    "Discrete": "4",
    "MultiDiscrete": "[3, 4]",
    "MultiBinary": "4",
}
"""Spaces of actions and observations (https://gymnasium.farama.org/api/spaces/fundamental/) → the arguments of a small one."""
PACKAGES = ("gym", "gymnasium")
FIELDS: Mapping[str, str] = {"n": "4", "shape": "(8,)", "low": "-1.0", "high": "1.0", "nvec": "[3, 4]", "dtype": "'float32'"}
"""What such objects have → its text. Of other names a name says what it is."""


def objects_of_named_classes(cls: Any, name: str) -> tuple[str, ...]:
    """Texts of objects of each class that the code asks for by name, of what it and what it hands the parameter on to read of them."""
    holders = list(handed_on(Holder(cls, name)))
    words = dict.fromkeys(word for holder in holders for word in _words(holder))
    fields = reads_of(holders).attributes.keys() - {"__class__"}
    indexed = {attribute for holder in holders for attribute in _indexed(holder)}
    items = ", ".join(f"{field!r}: {_text(field, field in indexed)}" for field in sorted(fields))
    return tuple(f"type({word!r}, (), {{{items}}})()" for word in words)


def spaces_of(cls: Any, name: str, annotation: str) -> tuple[str, ...]:
    """Texts of spaces: those that an annotation names, or of which the code asks whether the parameter is one."""
    names = names_around(cls)
    asked = [node for holder in handed_on(Holder(cls, name)) for node in _classes_asked(holder)]
    texts = dict.fromkeys(filter(None, (annotation, *map(ast.unparse, asked))))
    return tuple(f"{text}({SPACES[text.rpartition('.')[2]]})" for text in texts if _is_space(text, names))


def _is_space(text: str, names: Mapping[str, Any]) -> bool:
    if text.rpartition(".")[2] not in SPACES:
        return False
    value = value_of_name(ast.parse(text, mode="eval").body, names)
    return inspect.isclass(value) and value.__module__.partition(".")[0] in PACKAGES


def _classes_asked(holder: Holder) -> Iterator[ast.expr]:
    """The classes of which code asks whether its parameter is an instance."""
    names = {name for name, steps in aliases(holder).items() if not steps}
    for node in nodes_of(holder.code):
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[asked, classes]) if _is_one_of(asked, names):
                yield from classes.elts if isinstance(classes, ast.Tuple) else [classes]


def _words(holder: Holder) -> Iterator[str]:
    """The words with which code compares the name of the class of its parameter."""
    names = {name for name, steps in aliases(holder).items() if not steps}
    for node in nodes_of(holder.code):
        match node:
            case ast.Compare(left=left, ops=[ast.Eq() | ast.In()], comparators=[compared]) if _is_class_name(left, names):
                constants = compared.elts if isinstance(compared, (ast.Tuple, ast.List, ast.Set)) else [compared]
                yield from (one.value for one in constants if isinstance(one, ast.Constant) and isinstance(one.value, str))


def _is_class_name(node: ast.expr, names: set[str]) -> bool:
    match node:
        case ast.Attribute(value=ast.Attribute(value=owner, attr="__class__"), attr="__name__" | "__qualname__"):
            return _is_one_of(owner, names)
        case ast.Attribute(value=ast.Call(func=ast.Name(id="type"), args=[owner]), attr="__name__" | "__qualname__"):
            return _is_one_of(owner, names)
    return False


def _is_one_of(node: ast.expr, names: set[str]) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self"), attr=name):
            return name in names
    return False


def _indexed(holder: Holder) -> Iterator[str]:
    """The attributes into which code looks by a place."""
    for node in nodes_of(holder.code):
        match node:
            case ast.Subscript(value=ast.Attribute(attr=attribute)):
                yield attribute


def _text(field: str, indexed: bool) -> str:
    """What a field holds; a number in a tuple where the code looks into it."""
    text = FIELDS.get(field) or parameter_texts(field, "")[0]
    return f"({text},)" if indexed and text[:1] not in "([" else text
