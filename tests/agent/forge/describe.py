"""Cuts GitHub's OpenAPI description down to the operations that we use, with all that these refer to, so that a proxy starts in a moment.

`python describe.py FULL.json CUT.json`. Nothing is changed in what stays: paths, methods, parameters, bodies, responses, examples.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from migrate_agent.agent.forge.operations import GITHUB, Operation

_REFERENCE = re.compile(r"#/components/([^/]+)/([^/]+)$")


def cut(full: dict[str, Any], operations: tuple[Operation, ...]) -> dict[str, Any]:
    """The description with these operations only. Raises `KeyError` for one that is not in it."""
    paths: dict[str, Any] = {}
    for operation in operations:
        here = full["paths"][operation.path]
        kept = paths.setdefault(
            operation.path, {key: value for key, value in here.items() if key in ("parameters", "summary", "description")}
        )
        kept[operation.method] = here[operation.method]
    components: dict[str, dict[str, Any]] = {}
    waiting = list(references(paths))
    while waiting:
        kind, name = waiting.pop()
        if name not in components.setdefault(kind, {}):
            components[kind][name] = full["components"][kind][name]
            waiting += references(components[kind][name])
    return {"openapi": full["openapi"], "info": full["info"], "servers": full["servers"], "paths": paths, "components": components}


def references(value: Any) -> Iterator[tuple[str, str]]:
    """Kind and name of all components that a part of the description refers to."""
    if isinstance(value, dict):
        found = _REFERENCE.match(str(value.get("$ref", "")))
        if found:
            yield found[1], found[2]
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    target.write_text(json.dumps(cut(json.loads(source.read_text(encoding="utf-8")), GITHUB)), encoding="utf-8")
