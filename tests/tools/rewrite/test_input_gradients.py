"""Gradients inside a module: values, gradients of them and of parameters are torch's, or the place is a hole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate_agent.tests.tools.rewrite.migrating import Migrated, compare, migrated

FIXTURES = Path(__file__).with_name("fixtures")
FOLLOWED = {
    **dict.fromkeys(("Origin", "Read", "Steps", "Forces", "Branches"), "torch.randn(3, 4)"),
    "NewLeaf": "torch.randn(3, 4), torch.randn(3, 4)",
    "Twice": "torch.randn(3, 3), torch.randn(3, 1)",
}
NOT_FOLLOWED = ("Parted", "Carried", "AddedUp", "Trained")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Migrated]:
    calls = {
        "input_gradients": {name: ("", call) for name, call in {**FOLLOWED, **dict.fromkeys(NOT_FOLLOWED, "torch.randn(3, 4)")}.items()}
    }
    with migrated(FIXTURES, calls, tmp_path_factory.mktemp("gradients"), style="plain") as work:
        yield work


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", FOLLOWED)
def test_gradients_are_those_of_torch(work: Migrated, name: str, training: bool) -> None:
    compare(work, "input_gradients", name, training)


@pytest.mark.parametrize("name", NOT_FOLLOWED)
def test_a_way_that_is_not_whole_is_left(work: Migrated, name: str) -> None:
    source = (FIXTURES / "input_gradients.py").read_text().splitlines()
    start = next(number for number, line in enumerate(source, 1) if line.startswith(f"class {name}("))
    end = next((number for number, line in enumerate(source, 1) if number > start and line.startswith("class ")), len(source) + 1)
    assert any(start < hole.span.line < end for hole in work.draft.holes)
