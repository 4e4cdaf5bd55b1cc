"""One generator for a program whose files lie in several packages: each package has helpers of its own, and torch has one stream of numbers."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from migrate_agent.tools.types import Draft, Inventory

GENERATOR = "default_generator"


def with_one_generator(draft: Draft, inventory: Inventory, script: str) -> Draft:
    """The draft, whose helpers beside `script` (a target) take the generator from those of a package that the script imports."""
    holders = [path for path, text in draft.files.items() if _construction(text) is not None]
    own = PurePosixPath(script).parent
    lenders = [path for path in holders if PurePosixPath(path).parent != own]
    if len(holders) < 2 or not lenders:
        return draft
    home = _module(inventory, lenders[0])
    files = {path: _borrowed(draft.files[path], home) for path in holders if path != lenders[0]}
    return replace(draft, files={**draft.files, **files})


def _construction(text: str) -> ast.Assign | None:
    """The statement of a file that constructs the generator."""
    if f"{GENERATOR} = " not in text:
        return None
    assigned: Sequence[ast.Assign] = [node for node in ast.parse(text).body if isinstance(node, ast.Assign)]
    return next((node for node in assigned if ast.unparse(node.targets[0]) == GENERATOR), None)


def _module(inventory: Inventory, path: str) -> str:
    """The dotted name of a file of helpers, by the import root of the files beside it."""
    folder = PurePosixPath(path).parent
    roots: Mapping[str, str] = {PurePosixPath(file.target).parent.as_posix(): file.import_root for file in inventory.files}
    root = roots.get(folder.as_posix(), "")
    return ".".join(PurePosixPath(path).relative_to(root or ".").with_suffix("").parts)


def _borrowed(text: str, home: str) -> str:
    node = _construction(text)
    assert node is not None
    lines = text.splitlines(keepends=True)
    line = f"from {home} import {GENERATOR}  # noqa: E402, the program draws from one stream\n"
    lines[node.lineno - 1 : node.end_lineno] = [line]
    return "".join(lines)
