"""A repository from texts, its inventory, and the process sandbox."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from migrate_agent.sandbox import open_sandbox
from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.types import Inventory, SourceFile, Unit

Repository = Callable[..., Inventory]


def source_file(path: str, import_root: str, error: str) -> SourceFile:
    module = path.removeprefix(f"{import_root}/").removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    return SourceFile(path, module, path.replace(".py", "_jax.py"), f"{module}_jax", True, import_root, error=error)


def inventory_of(root: Path, import_root: str = "") -> Inventory:
    """The inventory of all files under `root`; every class that has a base is a unit."""
    files, units = [], []
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        try:
            tree = ast.parse(path.read_text())
        except SyntaxError as error:
            files.append(source_file(name, import_root, str(error)))
            continue
        files.append(source_file(name, import_root, ""))
        units += [Unit(name, node.name, name, "rewrite") for node in tree.body if isinstance(node, ast.ClassDef) and node.bases]
    return Inventory(root, tuple(files), tuple(units))


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    def make(files: Mapping[str, str], import_root: str = "") -> Inventory:
        # A run exports the repository to a folder below `.git`.
        root = tmp_path / ".git" / "repository"
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text))
        return inventory_of(root, import_root)

    return make


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    opened = open_sandbox("process", warn=lambda line: None)
    yield opened
    opened.close()
