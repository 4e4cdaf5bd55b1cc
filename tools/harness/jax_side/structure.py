"""What of a module's structure a call changes. Used inside the sandbox, on the candidate's side."""

from __future__ import annotations

from typing import Any


def changed(before: Any, after: Any) -> list[str]:
    """Paths of the attributes that are not the same in two graph definitions: static ones with other values, and what became or ceased to be one."""
    old, new = _attributes(before), _attributes(after)
    paths = [path for path in {**old, **new} if path not in old or path not in new or not _same(old[path], new[path])]
    return [path for path in paths if not any(path.startswith(other + ".") for other in paths)]


def _attributes(graphdef: Any) -> dict[str, Any]:
    """Path → what a graph definition holds there, NNX's own book-keeping left out."""
    found: dict[str, Any] = {}
    nodes, attributes = iter(graphdef.nodes), iter(graphdef.attributes)

    def walk(path: tuple[str, ...]) -> None:
        for _ in range(getattr(next(nodes), "num_attributes", 0)):
            key, value = next(attributes)
            below = (*path, str(key))
            if not any(part.startswith("_pytree__") for part in below):
                found[".".join(below)] = value
            if type(value).__name__ == "NodeAttr":
                walk(below)

    walk(())
    return found


def _same(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except Exception:  # arrays among the values
        return False
