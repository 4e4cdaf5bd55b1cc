"""What a mask of a constructor selects has a size under `jax.jit`, unless something may change the mask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate_agent.tests.tools.rewrite.migrating import Migrated, compare, migrated

FIXTURES = Path(__file__).with_name("fixtures")
KNOWN = {
    "Graph": ("4, ADJACENCY", "torch.randn(2, 3, 4)", "adj.at[self.m.value].set(self.e[0])"),
    "Channels": ("4, ADJACENCY", "torch.randn(2, 3, 4)", "adj.at[self.m.value].set(self.e[...].reshape(-1))"),
    "Reads": ("ADJACENCY", "torch.randn(2, 3, 3)", "x[:, ~self.near.value & ~self.apart.value]"),
    "Selects": ("ADJACENCY", "torch.randn(2, 3, 3)", "x[0][self.mask.value]"),
    "Updates": ("ADJACENCY", "torch.randn(2, 3, 3)", "y.at[:, self.mask.value].add(2 * self.e[...])"),
    "OfMethod": ("3", "torch.randn(2, 3, 3)", "x[0][self.mask.value]"),
    "Inherits": ("ADJACENCY", "torch.randn(2, 3, 3)", "x[:, self.mask.value]"),
}
"""Class → how it is constructed and called, and what its port says."""
CHANGING = {
    **dict.fromkeys(("Buffer", "OfBuffer", "OfParameter", "Random", "Again", "Named", "InPlace", "Rows", "KeptByMethod"), "ADJACENCY"),
    "Handed": "ADJACENCY > 0",
}
"""Class → its arguments, where the mask is loaded, random, or may be changed; or where torch orders the axes otherwise."""


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Migrated]:
    calls = {name: (constructed, called) for name, (constructed, called, _) in KNOWN.items()}
    calls |= {name: (constructed, "torch.randn(2, 3, 3)") for name, constructed in CHANGING.items()}
    with migrated(FIXTURES, {"constructed_masks": calls}, tmp_path_factory.mktemp("masks")) as work:
        yield work


def _text(work: Migrated, name: str) -> str:
    return work.draft.files["constructed_masks_jax.py"].partition(f"class {name}(")[2].partition("\nclass ")[0]


@pytest.mark.parametrize("name", KNOWN)
def test_outputs_and_gradients_are_those_of_torch(work: Migrated, name: str) -> None:
    assert KNOWN[name][-1] in _text(work, name)
    compare(work, "constructed_masks", name)


@pytest.mark.parametrize("name", CHANGING)
def test_other_masks_are_left(work: Migrated, name: str) -> None:
    lines = (FIXTURES / "constructed_masks.py").read_text().splitlines()
    first = next(i for i, line in enumerate(lines, 1) if line.startswith(f"class {name}("))
    last = next((i for i, line in enumerate(lines, 1) if i > first and line.startswith("class ")), len(lines) + 1)
    holes = [hole for hole in work.draft.holes if first < hole.span.line < last and hole.code == "dynamic-shape"]
    assert holes and ("Static(" not in _text(work, name) or name == "Rows"), _text(work, name)


def test_nothing_is_left_of_masks_that_are_known(work: Migrated) -> None:
    lines = (FIXTURES / "constructed_masks.py").read_text().splitlines()
    first = next(i for i, line in enumerate(lines, 1) if line.startswith("class Buffer"))
    assert all(hole.span.line > first for hole in work.draft.holes), work.draft.holes
