"""Writes a proposal's shardings into the rewrite: at the end of a class's constructor, as metadata of its parameters.

    self.fc.kernel.set_metadata(out_sharding=(None, "model"))

`nnx.get_partition_spec` and `nnx.get_named_sharding` read them. A class is annotated where all of its
instances agree. An earlier annotation is replaced.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from migrate_agent.tools.portable.sharding import Proposal

ANNOTATION = re.compile(r"^\s*self\S*\.set_metadata\(out_sharding=.*\)$")
COMMENT = "# Which axis of the mesh each axis of a parameter lies on."

Owner = tuple[str, str]
"""File and qualified name of a class of the rewrite."""


@dataclass(frozen=True)
class AnnotatedFiles:
    """The files that change (path → text), and notes on shardings that could not be written."""

    files: Mapping[str, str]
    notes: tuple[str, ...]


def annotate(
    files: Mapping[str, str], proposal: Proposal, owners: Mapping[str, Sequence[str]], layers: Mapping[str, Sequence[str]]
) -> AnnotatedFiles:
    """`owners` gives for each path of a module of the rewrite's own classes the file and the class; `layers` as in `propose`."""
    specs, notes = _by_class(proposal, owners, layers)
    texts = dict(files)
    for (file, name), rows in sorted(specs.items()):
        annotated = _annotate_class(texts[file], name, rows) if file in texts else None
        if annotated is None:
            notes.append(f"{name} has no constructor that statements can be added to: its {len(rows)} shardings are not written")
        else:
            texts[file] = annotated
    return AnnotatedFiles({path: text for path, text in texts.items() if text != files[path]}, tuple(notes))


def _by_class(
    proposal: Proposal, owners: Mapping[str, Sequence[str]], layers: Mapping[str, Sequence[str]]
) -> tuple[dict[Owner, dict[str, Any]], list[str]]:
    """Class → expression → spec, where all instances of the class agree; and notes where they do not."""
    instances: dict[Owner, list[str]] = {}
    for path, (file, name) in owners.items():
        instances.setdefault((file, name), []).append(path)
    instance_specs: dict[Owner, dict[str, list[Any]]] = {}
    for placed in proposal.placed:
        home = _owner_path(placed.path, owners)
        if home is not None:
            file, name = owners[home]
            instance_specs.setdefault((file, name), {}).setdefault(_expression(placed.path, home, layers), []).append(placed.spec)
    agreed: dict[Owner, dict[str, Any]] = {}
    notes = []
    for owner, rows in instance_specs.items():
        for expression, specs in rows.items():
            if not any(specs):
                continue
            if len(set(specs)) > 1 or len(specs) != len(instances[owner]):
                notes.append(f"{owner[1]}: its instances do not agree on {expression}, which stays whole")
                continue
            agreed.setdefault(owner, {})[expression] = specs[0]
    return agreed, notes


def _owner_path(path: str, owners: Mapping[str, Sequence[str]]) -> str | None:
    """The innermost module of the rewrite's own classes that holds this parameter."""
    parts = path.split("/")[:-1]
    return next((prefix for end in range(len(parts), -1, -1) if (prefix := "/".join(parts[:end])) in owners), None)


def _expression(path: str, home: str, layers: Mapping[str, Sequence[str]]) -> str:
    """`self.layers[0].kernel`: the parameter as its class reaches it."""
    text, module_path = "self", home
    for part in path.removeprefix(home).strip("/").split("/"):
        keyed = any("Dict" in name for name in layers.get(module_path, ()))
        text += f"[{part}]" if part.isdigit() else f'["{part}"]' if keyed else f".{part}"
        module_path = f"{module_path}/{part}".strip("/")
    return text


def _annotate_class(text: str, name: str, rows: Mapping[str, Any]) -> str | None:
    """The text with the statements at the end of the class's constructor; `None` where it has none, or returns early."""
    lines = text.splitlines(keepends=True)
    before = _constructor(text, name)
    # Statements after an early `return` would not run.
    if before is None or any(isinstance(node, ast.Return) for node in ast.walk(before)):
        return None
    own = range(before.lineno - 1, before.end_lineno or 0)
    stale = [index for index in own if ANNOTATION.match(lines[index].rstrip()) or lines[index].strip() == COMMENT]
    lines = [line for index, line in enumerate(lines) if index not in stale]
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
        definition = next((node for node in body if isinstance(node, ast.ClassDef) and node.name == part), None)
        if definition is None:
            return None
        body = definition.body
    return next((node for node in body if isinstance(node, ast.FunctionDef) and node.name == "__init__"), None)


def _tuple(spec: Sequence[Any]) -> str:
    parts = ['"' + axis + '"' if axis else "None" for axis in spec]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
