"""The rows of the tables say of themselves what their templates do."""

from __future__ import annotations

import inspect

import pytest
from flax import nnx

from migrate_agent.tests.tools.rewrite.tables.ops.differential import namespace
from migrate_agent.tools.rewrite.tables.registry import Layer, Op, Template, layers, methods, ops

ROWS = list(dict.fromkeys([*ops().values(), *methods().values()]))


def template_text(template: Template) -> str:
    """A template, or the source of the function that makes one with the strings it was made with."""
    if isinstance(template, str):
        return template
    if not inspect.isfunction(template):
        return ""
    enclosed = inspect.getclosurevars(template).nonlocals.values()
    return " ".join([inspect.getsource(template), *(value for value in enclosed if isinstance(value, str))])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_draws_exactly_where_its_template_asks_for_a_key(row: Op) -> None:
    assert row.draws == ("{rng" in template_text(row.to))


@pytest.mark.parametrize("row", [row for row in ROWS if row.quiet], ids=lambda row: row.name)
def test_only_a_row_that_draws_can_be_silenced(row: Op) -> None:
    assert row.draws


@pytest.mark.parametrize("row", [row for row in layers().values() if row.tested_as], ids=lambda row: row.name)
def test_flax_layer_of_an_isinstance_test_stands_for_one_layer_of_torch(row: Layer) -> None:
    base = getattr(nnx, row.tested_as.removeprefix("nnx."))
    classes = {other.vendored: getattr(namespace()["vendored"], other.vendored) for other in layers().values()}
    derived = {name for name, cls in classes.items() if inspect.isclass(cls) and issubclass(cls, base)}
    assert derived == {row.vendored}
