"""Configurations from which a library makes objects: `instantiate(encoder_cfg)` of a table that names its class and its arguments
(https://hydra.cc/docs/advanced/instantiate_objects/overview/)."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from migrate_agent.tools.record.guessing.choices import nodes_of
from migrate_agent.tools.record.guessing.reads import Holder, aliases, handed_on
from migrate_agent.tools.record.guessing.settings import Settings, as_value
from migrate_agent.tools.record.guessing.trials.trial import parameters, required
from migrate_agent.tools.record.guessing.values import Fields, Value

TARGET = "_target_"
OLDER = ("class", "cls", "target")
"""Keys of the class in tables that keep the arguments in one of their own, under `params`: Hydra had such before it had `_target_`."""
MAKERS = frozenset({"instantiate"})
STEM = re.compile(r"_?(cfg|config|conf|configuration|params|args)$")
"""What a parameter's name says beside what is made of it."""
MOST = 3
"""Tables that are tried for one parameter."""


def is_instantiated(cls: Any, name: str) -> bool:
    """Whether the class, or what it hands the parameter on to, has an object made of it."""
    for holder in handed_on(Holder(cls, name)):
        names = [other for other, steps in aliases(holder).items() if steps == ()]
        for node in nodes_of(holder.code):
            match node:
                case ast.Call(func=ast.Attribute(attr=made) | ast.Name(id=made), args=[taken, *_]) if made in MAKERS:
                    if ast.unparse(taken).removeprefix("self.") in names:
                        return True
    return False


def target_of(table: Any) -> tuple[str, Mapping[str, Any]] | None:
    """The dotted name of the class that a table names, and the arguments for it."""
    if not isinstance(table, dict):
        return None
    if isinstance(target := table.get(TARGET), str):
        return target, {name: value for name, value in table.items() if name != TARGET}
    arguments = table.get("params", {})
    for key in OLDER:
        if isinstance(target := table.get(key), str) and "." in target and isinstance(arguments, dict):
            return target, arguments
    return None


def instantiable(
    name: str,
    tables: Collection[Settings],
    classes: Mapping[str, type],
    load: Callable[[str], Any],
    texts: Callable[[type], Callable[[str], Value]],
) -> Iterator[Fields]:
    """Tables for a parameter of which an object is made: those of the repository whose classes are its own (`load` gives the class of a dotted name, or
    None), else one for a class that the parameter is named after (`classes`: dotted name → class). What a table leaves open is what `texts` says of the
    parameters of its class."""
    stem = STEM.sub("", name.lower())
    nodes = [(key, parts) for table in tables for key, value in (("", table), *table.items()) if (parts := target_of(value)) is not None]
    nodes += [("", (dotted, {})) for dotted in classes]
    rows = [(key, dotted, arguments, cls) for key, (dotted, arguments) in nodes if (cls := load(dotted)) is not None]

    def likeness(row: tuple[str, str, Mapping[str, Any], Any]) -> tuple[bool, ...]:
        key, own = row[0].lower(), row[3].__name__.lower()
        plain = stem.replace("_", "")
        return (key != name.lower(), key != stem, own != plain, plain not in own, not row[2])

    configurations: dict[Fields, None] = {}
    for row in sorted(rows, key=likeness):
        if (row[0] or row[2]) or not all(likeness(row)[:4]):
            configurations[_node(row[1], row[2], row[3], load, texts)] = None
        if len(configurations) == MOST:
            break
    yield from configurations


def _node(
    dotted: str, arguments: Mapping[str, Any], cls: Any, load: Callable[[str], Any], texts: Callable[[type], Callable[[str], Value]]
) -> Fields:
    """A table as the installed library takes it, with all that its class needs."""
    values: dict[str, Value] = {}
    for name, value in arguments.items():
        inner = target_of(value)
        inner_cls = load(inner[0]) if inner is not None else None
        values[name] = _node(*inner, inner_cls, load, texts) if inner is not None and inner_cls is not None else as_value(value)
    needed = [item.name for item in required(parameters(cls)) if item.name not in values] if "_partial_" not in values else []
    text = texts(cls) if needed else None
    values |= {name: text(name) for name in needed if text is not None}
    return Fields(((TARGET, repr(dotted)), *values.items()))
