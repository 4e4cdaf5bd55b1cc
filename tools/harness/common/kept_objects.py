"""Plain Python objects that a module holds (a configuration, a table), before and after a call. Used inside the sandbox.

Each call of the original has a deep copy of the module. `nnx.merge` copies variables and modules, and gives every copy the same plain objects. Where the
original changes such objects on purpose, the next call of the port must not see it; elsewhere it must, since no user of the port has them put back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any

MOST = 10_000
"""Objects that are looked at: a module that holds more holds data, not settings."""
Restore = Callable[[], bool]
"""Fills a container with what it held, and says whether that was something else."""
_OPAQUE = (type, FunctionType, ModuleType, str, bytes, int, float, complex, bool, type(None))


@contextmanager
def kept(owners: Iterable[Any], is_part: Callable[[Any], bool]) -> Iterator[None]:
    """While the context lasts, the plain objects in the owners' attributes may change; afterwards they are as before. `is_part` says what is
    copied along with the owners themselves. What such a part was put into stays: an array that a traced call leaves in a plain object leaks, and must show.
    """
    restore = snapshot([value for owner in owners for value in vars(owner).values()], is_part)
    try:
        yield
    finally:
        for put_back in restore:
            put_back()


def snapshot(values: list[Any], is_part: Callable[[Any], bool]) -> list[Restore]:
    """What puts back the plain objects among the values and in them."""
    restore: list[Restore] = []
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


def _filled(container: Any, is_part: Callable[[Any], bool]) -> Restore:
    """What fills a list, dictionary or set with what it holds now."""
    before: Any = container.copy()

    def put_back() -> bool:
        if _items(container) == _items(before):
            return False
        held = {id(value) for value in _values(before)}
        if not any(map(is_part, (value for value in _values(container) if id(value) not in held))):
            container.clear()
            container.extend(before) if isinstance(container, list) else container.update(before)
        return True

    return put_back


def _items(container: Any) -> Any:
    """The objects in a container, by what tells them apart."""
    if isinstance(container, dict):
        return [(key, id(value)) for key, value in container.items()]
    return [id(value) for value in container] if isinstance(container, list) else {id(value) for value in container}


def _values(container: Any) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container
