"""Rewrites a snippet as if it were the only file of a repository."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

from migrate_agent.tools.rewrite.assemble.formatting import format_python
from migrate_agent.tools.rewrite.assemble.workspace import Workspace
from migrate_agent.tools.types import Hole, Inventory, Observations, SourceFile


def snippet_workspace(folder: Path, source: str, observations: Observations | None = None) -> Workspace:
    """A workspace over one file `snippet.py`."""
    (folder / "snippet.py").write_text(source)
    file = SourceFile("snippet.py", "snippet", "snippet_jax.py", "snippet_jax", True)
    return Workspace(Inventory(folder, (file,), ()), observations or {})


def rewrite_snippet(folder: Path, source: str, style: Literal["plain", "close"] = "close") -> tuple[str, tuple[Hole, ...]]:
    """The rewritten statements (imports of torch gone, none added) and the holes."""
    space = Workspace(replace(snippet_workspace(folder, source).inventory, style=style), {})
    text = "".join(statement.text for statement in space.statements("snippet.py"))
    return tidy(text), space.rewritten("snippet.py").holes


def tidy(text: str) -> str:
    """Formatted, so that only meaning and names are compared."""
    return format_python({"file.py": text.strip() + "\n"})["file.py"]
