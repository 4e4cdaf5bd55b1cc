"""Numbers that are read out of tensors stay arrays where only arithmetic, indices and shifts take them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate_agent.tests.tools.rewrite.migrating import Migrated, compare, migrated

FIXTURES = Path(__file__).with_name("fixtures")
ARRAYS = {
    "Divides": "torch.randn(3, 4)",
    "Scales": "torch.randn(3, 4)",
    "Lists": "torch.randn(3, 4)",
    "Chooses": "torch.randn(3, 4), True",
    "Rolls": "torch.randn(3, 4)",
    "Places": "torch.randn(4, 4)",
    "Counts": "torch.randn(3, 4)",
    "Extremes": "torch.randn(3, 4)",
}
NUMBERS = ("Branches", "Shows", "Roots", "Casts", "Powers", "Sizes", "Rounds", "Whole", "Gathers", "Accumulates", "Narrow", "Largest")
"""Classes that do something else with the number, or that may make another dtype of it."""


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Migrated]:
    calls = {"computed_numbers": {name: ("", call) for name, call in {**ARRAYS, **dict.fromkeys(NUMBERS, "torch.randn(4, 4)")}.items()}}
    with migrated(FIXTURES, calls, tmp_path_factory.mktemp("computed")) as work:
        yield work


@pytest.mark.parametrize("name", ARRAYS)
def test_outputs_and_gradients_are_those_of_numbers(work: Migrated, name: str) -> None:
    compare(work, "computed_numbers", name)


@pytest.mark.parametrize("name", NUMBERS)
def test_other_uses_stay_as_they_were(work: Migrated, name: str) -> None:
    text = work.draft.files["computed_numbers_jax.py"].partition(f"class {name}(")[2].partition("\nclass ")[0]
    assert "stop_gradient" not in text
    assert ".item()" in text or "int(" in text or "lax.cond" in text, text


def test_holes_are_where_numbers_are_left(work: Migrated) -> None:
    lines = (FIXTURES / "computed_numbers.py").read_text().splitlines()
    first = next(i for i, line in enumerate(lines, 1) if line.startswith("class Branches"))
    assert work.draft.holes
    assert all(hole.span.line > first for hole in work.draft.holes), work.draft.holes
