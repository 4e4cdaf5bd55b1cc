"""Mixtures of experts: what data route to an expert is computed for all rows, where the expert acts on each row alone; else it is left open."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from migrate_agent.tests.tools.compiling import unoptimised
from migrate_agent.tests.tools.rewrite.migrating import Migrated, compare, migrated

pytestmark = pytest.mark.ci  # the fixtures are recorded and rewritten, which takes its time

FIXTURES = Path(__file__).with_name("fixtures") / "experts"


def _tables(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"fixture_{name}", FIXTURES / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ROUTED, MIXING = _tables("routed"), _tables("mixing")
WEIGHED = frozenset(ROUTED.CALLS) - {"Masked", "EachSlot"}
"""Classes whose experts are given all rows; a mask with one axis selects from as many already."""


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Migrated]:
    calls = {"routed": ROUTED.CALLS, "mixing": MIXING.CALLS}
    with unoptimised(), migrated(FIXTURES, calls, tmp_path_factory.mktemp("experts"), "plain") as found:
        yield found


@pytest.mark.parametrize(("module", "name"), [("routed", name) for name in ROUTED.CALLS] + [("mixing", name) for name in MIXING.RIGHT])
def test_as_torch(work: Migrated, module: str, name: str) -> None:
    assert name not in _open(work, module)
    compare(work, module, name)


@pytest.mark.parametrize("name", MIXING.OPEN)
def test_rows_that_depend_on_others_are_left_open(work: Migrated, name: str) -> None:
    assert name in _open(work, "mixing")


@pytest.mark.parametrize("name", sorted(WEIGHED))
def test_experts_are_given_all_rows(work: Migrated, name: str) -> None:
    """No place is selected, and no test asks whether there are any."""
    classes = {node.name: ast.unparse(node) for node in ast.parse(work.draft.files["routed_jax.py"]).body if isinstance(node, ast.ClassDef)}
    assert "jnp.sum(jnp.where(" in classes[name]
    assert not {word for word in ("nonzero", "cond(", ".at[", "if ") if word in classes[name]}


def _open(work: Migrated, module: str) -> set[str]:
    """The classes that a hole stands in."""
    holes = [hole for hole in work.draft.holes if hole.source == f"{module}.py"]
    classes = [node for node in ast.parse((FIXTURES / f"{module}.py").read_text()).body if isinstance(node, ast.ClassDef)]
    return {node.name for node in classes for hole in holes if node.lineno <= hole.span.line <= (node.end_lineno or 0)}
