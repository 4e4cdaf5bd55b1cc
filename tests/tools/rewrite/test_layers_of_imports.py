"""Inside the rewriter imports run one way: the tables know nothing of the analysis, the analysis nothing of the rules."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = "migrate_agent.tools.rewrite"
ROOT = Path(__file__).parents[3] / "tools" / "rewrite"
LAYERS = ("tables", "specialise", "analysis", "rules", "assemble")
"""From the lowest: each may import itself and what stands before it."""


def imported(text: str) -> set[str]:
    """The modules that a file imports, wherever the statement stands."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def upward(layer: str, text: str) -> list[str]:
    """The imports of a file in `layer` that climb to a layer above it, or to the package as a whole."""
    allowed = LAYERS[: LAYERS.index(layer) + 1]
    ours = (name.removeprefix(f"{PACKAGE}.") for name in imported(text) if name.startswith(f"{PACKAGE}."))
    return sorted(name for name in ours if name.partition(".")[0] not in allowed)


def test_every_folder_is_a_layer() -> None:
    assert {folder.name for folder in ROOT.iterdir() if (folder / "__init__.py").exists()} == set(LAYERS)


@pytest.mark.parametrize("layer", LAYERS)
def test_no_import_climbs(layer: str) -> None:
    climbing = {file.name: names for file in (ROOT / layer).rglob("*.py") if (names := upward(layer, file.read_text(encoding="utf-8")))}
    assert climbing == {}


def test_an_import_that_climbs_is_seen() -> None:
    assert upward("analysis", f"from {PACKAGE}.rules.rule import Rule") == ["rules.rule.Rule"]
    assert upward("tables", f"def f():\n    import {PACKAGE}.analysis.facts") == ["analysis.facts"]
    assert upward("rules", f"from {PACKAGE} import translate") == ["translate"]
    assert upward("assemble", f"from {PACKAGE}.rules.engine import rewrite_file") == []
