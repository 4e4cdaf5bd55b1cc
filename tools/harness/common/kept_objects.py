"""Plain Python objects that a module holds (a configuration, a table), as they were before a call: the next call must not see what it changed in them.

`nnx.merge` copies variables and modules, and gives every copy the same plain objects. Used inside the sandbox.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any

MOST = 10_000
"""Objects that are looked at: a module that holds more holds data, not settings."""
_OPAQUE = (type, FunctionType, ModuleType, str, bytes, int, float, complex, bool, type(None))


@contextmanager
def kept(owners: Iterable[Any], is_part: Callable[[Any], bool]) -> Iterator[None]:
    """While the context lasts, the plain objects in the owners' attributes may change; afterwards they are as before. `is_part` says what is
    copied along with the owners themselves. What such a part was put into stays: an array that a traced call leaves in a plain object leaks, and must show.
    """
    restore = _snapshot([value for owner in owners for value in vars(owner).values()], is_part)
    try:
        yield
    finally:
        for put_back in restore:
            put_back()


def _snapshot(values: list[Any], is_part: Callable[[Any], bool]) -> list[Callable[[], None]]:
    restore: list[Callable[[], None]] = []
    visited: dict[int, Any] = {}  # keeps the objects, so that no number stands for two of them
    while values and len(visited) < MOST:
        value = values.pop()
        if id(value) in visited or isinstance(value, _OPAQUE) or is_part(value):
            continue
        visited[id(value)] = value
        if isinstance(value, (list, dict, set)):
            restore.append(_filled(value, is_part))
            values += [*value.values()] if isinstance(value, dict) else [*value]
        elif isinstance(value, (tuple, frozenset)):
            values += [*value]
        elif isinstance(attributes := getattr(value, "__dict__", None), dict):
            restore.append(_filled(attributes, is_part))
            values += [*attributes.values()]
    return restore


def _filled(container: Any, is_part: Callable[[Any], bool]) -> Callable[[], None]:
    """What fills a list, dictionary or set with what it holds now."""
    before: Any = container.copy()

    def put_back() -> None:
        held = {id(value) for value in _values(before)}
        if any(map(is_part, (value for value in _values(container) if id(value) not in held))):
            return
        container.clear()
        container.extend(before) if isinstance(container, list) else container.update(before)

    return put_back


def _values(container: Any) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container
