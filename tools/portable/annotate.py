"""Writes a proposal's shardings into the rewrite: at the end of a class's constructor, as metadata of its parameters.

    self.fc.kernel.set_metadata(out_sharding=(None, "model"))

`nnx.get_partition_spec` and `nnx.get_named_sharding` read them. A class is annotated where all of its instances agree; what is there of an
earlier annotation is replaced.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from migrate_agent.tools.portable.sharding import Proposal

WRITTEN = re.compile(r"^\s*self\S*\.set_metadata\(out_sharding=.*\)$")
COMMENT = "# Which axis of the mesh each axis of a parameter lies on."

Owner = tuple[str, str]
"""File and qualified name of a class of the rewrite."""


@dataclass(frozen=True)
class Annotated:
    """The files that change, by path, and what could not be written."""

    files: Mapping[str, str]
    notes: tuple[str, ...]


def annotate(
    files: Mapping[str, str], proposal: Proposal, owners: Mapping[str, Sequence[str]], layers: Mapping[str, Sequence[str]]
) -> Annotated:
    """`owners` gives for each path of a module of the rewrite's own classes the file and the class; `layers` as in `propose`."""
    wanted, notes = _by_class(proposal, owners, layers)
    texts = dict(files)
    for (file, name), rows in sorted(wanted.items()):
        done = _written(texts[file], name, rows) if file in texts else None
        if done is None:
            notes.append(f"{name} has no constructor that statements can be added to: its {len(rows)} shardings are not written")
        else:
            texts[file] = done
    return Annotated({path: text for path, text in texts.items() if text != files[path]}, tuple(notes))


def _by_class(
    proposal: Proposal, owners: Mapping[str, Sequence[str]], layers: Mapping[str, Sequence[str]]
) -> tuple[dict[Owner, dict[str, Any]], list[str]]:
    """For each class the spec of each expression, where all instances agree."""
    instances: dict[Owner, list[str]] = {}
    for path, (file, name) in owners.items():
        instances.setdefault((file, name), []).append(path)
    seen: dict[Owner, dict[str, list[Any]]] = {}
    for placed in proposal.placed:
        home = _home(placed.path, owners)
        if home is not None:
            file, name = owners[home]
            seen.setdefault((file, name), {}).setdefault(_expression(placed.path, home, layers), []).append(placed.spec)
    wanted: dict[Owner, dict[str, Any]] = {}
    notes = []
    for owner, rows in seen.items():
        for expression, specs in rows.items():
            if not any(specs):
                continue
            if len(set(specs)) > 1 or len(specs) != len(instances[owner]):
                notes.append(f"{owner[1]}: its instances do not agree on {expression}, which stays whole")
                continue
            wanted.setdefault(owner, {})[expression] = specs[0]
    return wanted, notes


def _home(path: str, owners: Mapping[str, Sequence[str]]) -> str | None:
    """The innermost module of the rewrite's own classes that holds this parameter."""
    parts = path.split("/")[:-1]
    return next((place for end in range(len(parts), -1, -1) if (place := "/".join(parts[:end])) in owners), None)


def _expression(path: str, home: str, layers: Mapping[str, Sequence[str]]) -> str:
    """`self.layers[0].kernel`: the parameter as its class reaches it."""
    text, place = "self", home
    for part in path.removeprefix(home).strip("/").split("/"):
        keyed = any("Dict" in name for name in layers.get(place, ()))
        text += f"[{part}]" if part.isdigit() else f'["{part}"]' if keyed else f".{part}"
        place = f"{place}/{part}".strip("/")
    return text


def _written(text: str, name: str, rows: Mapping[str, Any]) -> str | None:
    """The text with the statements at the end of the class's constructor; None where that cannot be."""
    lines = text.splitlines(keepends=True)
    before = _constructor(text, name)
    if before is None or any(isinstance(node, ast.Return) for node in ast.walk(before)):
        return None
    own = range(before.lineno - 1, before.end_lineno or 0)
    stale = [place for place in own if WRITTEN.match(lines[place].rstrip()) or lines[place].strip() == COMMENT]
    lines = [line for place, line in enumerate(lines) if place not in stale]
    constructor = _constructor("".join(lines), name)
    if constructor is None:
        return None
    end = constructor.body[-1].end_lineno or 0
    indent = " " * constructor.body[-1].col_offset
    new = [f"{indent}{expression}.set_metadata(out_sharding={_tuple(spec)})\n" for expression, spec in rows.items()]
    return "".join([*lines[:end], f"{indent}{COMMENT}\n", *new, *lines[end:]])


def _constructor(text: str, name: str) -> ast.FunctionDef | None:
    body: Sequence[ast.stmt] = ast.parse(text).body
    for part in name.split("."):
        found = next((node for node in body if isinstance(node, ast.ClassDef) and node.name == part), None)
        if found is None:
            return None
        body = found.body
    return next((node for node in body if isinstance(node, ast.FunctionDef) and node.name == "__init__"), None)


def _tuple(spec: Sequence[Any]) -> str:
    parts = ['"' + axis + '"' if axis else "None" for axis in spec]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
