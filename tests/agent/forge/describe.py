"""Cuts GitHub's OpenAPI description down to the operations that we use, with all that these refer to, so that a proxy starts in a moment.

`python describe.py FULL.json CUT.json`. Nothing is changed in what stays: paths, methods, parameters, bodies, responses, examples.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
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


def example(description: Mapping[str, Any], method: str, path: str) -> Any:
    """GitHub's own example of a successful answer, as far as the description requires it; nothing without the description.

    What is optional goes: GitHub's examples are not right throughout by GitHub's description.
    """
    if not description:
        return [] if path.endswith("labels") else {}
    responses = description["paths"][path][method]["responses"]
    content = responses.get("200") or responses["201"]
    media = content["content"]["application/json"]
    example = _resolved(description, next(iter(media["examples"].values())))
    return _required(description, json.loads(json.dumps(example["value"])), media["schema"])


def _resolved(description: Mapping[str, Any], part: Any) -> Any:
    """The part of the description that a reference leads to."""
    while "$ref" in part:
        _, _, kind, name = part["$ref"].split("/")
        part = description["components"][kind][name]
    return part


def _required(description: Mapping[str, Any], value: Any, schema: Any) -> Any:
    schema = _resolved(description, schema)
    if isinstance(value, list):
        return [_required(description, each, schema["items"]) for each in value]
    if not isinstance(value, dict) or "properties" not in schema:
        return value
    parts, wanted = schema["properties"], schema.get("required", [])
    blank = {key: _blank(_resolved(description, parts.get(key, {}))) for key in wanted}
    return blank | {key: _required(description, each, parts.get(key, {})) for key, each in value.items() if key in wanted}


def _blank(schema: Mapping[str, Any]) -> Any:
    """A value for what an example lacks though the description requires it."""
    kind = schema.get("type", "null")
    blanks = {"string": "", "integer": 0, "number": 0, "boolean": False, "array": [], "object": {}}
    return None if schema.get("nullable") or "null" in kind else blanks[kind]


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    target.write_text(json.dumps(cut(json.loads(source.read_text(encoding="utf-8")), GITHUB)), encoding="utf-8")
