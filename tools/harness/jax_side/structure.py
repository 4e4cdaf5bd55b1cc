"""Finds changes of a module's structure by a call. Used inside the sandbox, on the candidate's side."""

from __future__ import annotations

from typing import Any


def changed(before: Any, after: Any) -> list[str]:
    """Paths of attributes that differ between two graph definitions: static ones with other values, added and removed ones."""
    old, new = _attributes(before), _attributes(after)
    paths = [path for path in {**old, **new} if path not in old or path not in new or not _same(old[path], new[path])]
    # A changed attribute contains its own items; one path says it.
    return [path for path in paths if not any(path.startswith(other + ".") for other in paths)]


def plain_values(graphdef: Any) -> dict[str, Any]:
    """Path → value of the numbers, words and switches among the attributes."""
    values = {path: attribute.value for path, attribute in _attributes(graphdef).items() if hasattr(attribute, "value")}
    return {path: value for path, value in values.items() if value is None or isinstance(value, (bool, int, float, str))}


def _attributes(graphdef: Any) -> dict[str, Any]:
    """Path → attribute of a graph definition, NNX's own book-keeping left out."""
    attributes_by_path: dict[str, Any] = {}
    nodes, attributes = iter(graphdef.nodes), iter(graphdef.attributes)

    def walk(path: tuple[str, ...]) -> None:
        for _ in range(getattr(next(nodes), "num_attributes", 0)):
            key, value = next(attributes)
            below = (*path, str(key))
            if not any(part.startswith("_pytree__") for part in below):
                attributes_by_path[".".join(below)] = value
            if type(value).__name__ == "NodeAttr":
                walk(below)

    walk(())
    return attributes_by_path


def _same(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except Exception:  # arrays among the values
        return False
