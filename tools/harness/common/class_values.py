"""Values that belong to classes: attributes of a unit's class, and of the helper classes (settings, enums) that its constructor takes.

As JSON, so that the two sides can be compared outside of their processes. Imports no framework.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from migrate_agent.tools.harness.common.methods import is_method, own_classes
from migrate_agent.tools.harness.common.signatures import describe

PLAIN = (bool, int, float, complex, str, bytes, type(None))
DEPTH = 4
"""How deep helper objects are looked for in containers and in each other."""
Values = dict[str, Any]
"""`Class.attribute` → the value as JSON."""


def class_values(cls: type, arguments: object, root: str, base: type) -> Values:
    """The plain class attributes of the unit, and of each helper class of the files below `root` among the constructor's arguments.

    Of helpers also the defaults, the members of enums, and what properties of the very objects give.
    """
    values = dict(_attributes(cls))
    for helper in _helpers(arguments, root, base, DEPTH):
        kind = helper if isinstance(helper, type) else type(helper)
        if isinstance(helper, enum.Enum):
            values |= {f"{kind.__name__}.{name}": plain(member.value) for name, member in kind.__members__.items()}  # type: ignore[attr-defined]
            continue
        values |= dict(_attributes(kind)) | dict(_defaults(kind)) | (dict(_properties(helper)) if helper is not kind else {})
    return values


def plain(value: Any) -> Any:
    """The value as JSON that tells equal values from others; `None` where it is not plain, `["value", …]` where it is."""
    if isinstance(value, enum.Enum):
        return ["enum", type(value).__name__, value.name]
    if type(value) in PLAIN:
        return ["value", type(value).__name__, repr(value)]
    if type(value) in (list, tuple):
        return _several(type(value).__name__, [plain(item) for item in value])
    if type(value) in (set, frozenset):
        return _several("set", sorted((plain(item) for item in value), key=repr))
    if isinstance(value, Mapping):
        return _several("dict", [plain(item) for pair in value.items() for item in pair])
    return None


def _several(kind: str, items: list[Any]) -> Any:
    return None if None in items else [kind, items]


def _attributes(cls: type) -> Iterator[tuple[str, Any]]:
    for owner in reversed(own_classes(cls)):
        for name, value in vars(owner).items():
            if not name.startswith("_") and not is_method(value) and not isinstance(value, type) and (row := plain(value)) is not None:
                yield f"{cls.__name__}.{name}", row


def _defaults(cls: type) -> Iterator[tuple[str, Any]]:
    for item in dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ():
        value = item.default if item.default is not dataclasses.MISSING else None
        if item.default_factory is not dataclasses.MISSING:
            value = item.default_factory()
        yield f"{cls.__name__}({item.name}=…)", plain(value)
    if not dataclasses.is_dataclass(cls):
        rows: Sequence[Mapping[str, str]] = describe(cls, "__init__", object) or ()
        yield from ((f"{cls.__name__}({row['name']}=…)", row["default"]) for row in rows)


def _properties(helper: Any) -> Iterator[tuple[str, Any]]:
    for owner in own_classes(type(helper)):
        for name, member in vars(owner).items():
            if isinstance(member, property | functools.cached_property) and not name.startswith("_"):
                try:
                    row = plain(getattr(helper, name))
                except Exception:  # safe: what the original itself does not give is nothing to compare
                    continue
                if row is not None:
                    yield f"{type(helper).__name__}().{name}", row


def _helpers(value: Any, root: str, base: type, depth: int) -> Iterator[Any]:
    """Objects (and classes) of the files below `root` in a nest of containers and of each other."""
    if depth == 0 or isinstance(value, base) or type(value) in PLAIN:
        return
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _helpers(item, root, base, depth - 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _helpers(item, root, base, depth - 1)
    elif _is_own(value if isinstance(value, type) else type(value), root) and not (isinstance(value, type) and issubclass(value, base)):
        yield value
        for item in () if isinstance(value, type | enum.Enum) else getattr(value, "__dict__", {}).values():
            yield from _helpers(item, root, base, depth - 1)


def _is_own(cls: type, root: str) -> bool:
    file = getattr(sys.modules.get(cls.__module__), "__file__", None) or ""
    return file.startswith(f"{root}/")
