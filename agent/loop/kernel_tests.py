"""The test of a hole that a kernel left: what the kernel was given and gave where it ran, as files that can be run on what is written in its place."""

from __future__ import annotations

import ast
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from migrate_agent.agent.config.json_files import write_text
from migrate_agent.tools.record.store import kernel_call_to_json, shapes
from migrate_agent.tools.rewrite.rules.environment.custom_kernels import CODE
from migrate_agent.tools.types import Draft, Hole, Inventory, KernelCall, Recording
from migrate_agent.tools.verify.contract.recorded_rows import ROWS
from migrate_agent.tools.verify.evidence.recorded_kernels import function_name

TEST = '''\
"""What `{name}` of {source} gave where it ran. With the rewrite's folder and migrate-agent on the path: `python -m pytest {file}`."""

from pathlib import Path

from {module} import {root}

from migrate_agent.tools.verify.recorded_side import problems


def test_{slug}() -> None:
    assert problems({called}, Path(__file__).parent) == []
'''


def with_tests(draft: Draft, recording: Recording, inventory: Inventory, original: Path, folder: Path, root: Path) -> Draft:
    """The draft, its holes of kernels naming their tests, which are written under `folder`: a test file, the calls as JSON, and their arrays.

    Where the folder lies below `root`, the tests are named from there. Tests of holes that are filled stay.
    """
    return replace(draft, holes=tuple(_with_test(hole, recording, inventory, original, folder, root) for hole in draft.holes))


def _with_test(hole: Hole, recording: Recording, inventory: Inventory, original: Path, folder: Path, root: Path) -> Hole:
    names = set(_around(original / hole.source, hole.span.line)) if hole.code == CODE else set()
    mine = [call for call in recording.kernel_calls if call.source == hole.source and call.name in names]
    if not mine:
        error = next((recording.errors[key] for name in sorted(names) if (key := f"{hole.source}:{name}") in recording.errors), "")
        return replace(hole, reason=f"{hole.reason}; no call of it was recorded: {error}") if error else hole
    changed = sorted({name for call in mine for name in call.changed})
    if changed:
        return replace(hole, reason=f"{hole.reason}; it changes {', '.join(changed)} in place, so that its recorded calls are no test")
    test = _write(mine, inventory, folder)
    test = test.relative_to(root) if test.is_relative_to(root) else test
    signatures = "; ".join(dict.fromkeys(_shapes(call) for call in mine))
    count = f"{len(mine)} recorded call{'s' if len(mine) > 1 else ''}"
    return replace(hole, reason=f"{hole.reason}; {count} ({signatures}) judge what is written here: {test}")


def _around(file: Path, line: int) -> Iterator[str]:
    """Qualified names of the functions around a line."""

    def walk(node: ast.AST, path: str) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            inside = path
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                inside = f"{path}.{child.name}" if path else child.name
                if isinstance(child, ast.FunctionDef) and child.lineno <= line <= (child.end_lineno or child.lineno):
                    yield inside
            yield from walk(child, inside)

    yield from walk(ast.parse(file.read_text(encoding="utf-8-sig")), "")


def _write(calls: Sequence[KernelCall], inventory: Inventory, folder: Path) -> Path:
    """The test of one function. Gives its file."""
    called = function_name(calls[0])
    slug = re.sub(r"\W+", "_", called)
    test_folder = folder / f"{re.sub(r'[^A-Za-z0-9]+', '-', calls[0].source)}-{slug}"
    shutil.rmtree(test_folder, ignore_errors=True)
    test_folder.mkdir(parents=True)
    for call in calls:
        if call.tensors is not None:
            shutil.copyfile(call.tensors, test_folder / call.tensors.name)
    write_text(test_folder / ROWS, json.dumps([kernel_call_to_json(call) for call in calls], indent=1) + "\n")
    module = next(file.target_module for file in inventory.files if file.path == calls[0].source)
    file = test_folder / f"test_{slug}.py"
    names = {"name": calls[0].name, "source": calls[0].source, "module": module, "root": called.partition(".")[0]}
    write_text(file, TEST.format(**names, file=file.name, slug=slug, called=called))
    return file


def _shapes(call: KernelCall) -> str:
    """`F32 [2, 3], F32 [2, 3] -> F32 [2, 3]`, as the header of the arrays' file has it."""
    rows = [row.partition(" ") for row in shapes(call.tensors)]
    sides = (", ".join(rest for name, _, rest in rows if name.startswith(side)) for side in ("in/", "out/"))
    return " -> ".join(sides)
