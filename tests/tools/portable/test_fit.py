"""The search for the largest size, on made-up memories; blocks that are recomputed, in real programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate_agent.sandbox import open_sandbox
from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tests.tools.portable.units import ahead
from migrate_agent.tools.portable.ahead import Variant
from migrate_agent.tools.portable.fit import SizeTrial, largest

MEMORY = 1_000_000


def memory(fixed: int, slope: int) -> Callable[[int], SizeTrial]:
    """Sizes that take this much."""

    def attempt(size: int) -> SizeTrial:
        peak = fixed + slope * size
        return SizeTrial(size, peak, MEMORY) if peak <= MEMORY else SizeTrial(size, refused="hbm")

    return attempt


@given(fixed=st.integers(0, 900_000), slope=st.integers(1, 50_000), start=st.integers(1, 64), step=st.sampled_from([1, 4, 16]))
def test_the_largest_size_is_found_to_a_sixteenth(fixed: int, slope: int, start: int, step: int) -> None:
    low, high, tried, stopped = largest(memory(fixed, slope), start, step)
    best = (MEMORY - fixed) // slope
    assert low <= best, "what is said to fit fits"
    assert stopped == "" and low < high and best < high <= low + max(step, low // 16)
    assert low % step == high % step == 0
    assert len(tried) <= 32 and {row.size for row in tried} >= {low, high} - {0}


def test_another_refusal_ends_the_search_and_is_told() -> None:
    def attempt(size: int) -> SizeTrial:
        return SizeTrial(size, size, MEMORY) if size <= 64 else SizeTrial(size, refused="error", text="no position 65")

    low, high, tried, stopped = largest(attempt, 32)
    assert (low, high, [row.size for row in tried]) == (64, 0, [32, 64, 128])
    assert stopped == "128 is refused for another reason (error): no position 65"


def test_what_always_fits_ends_at_the_ceiling() -> None:
    low, high, _, stopped = largest(lambda size: SizeTrial(size, 1, MEMORY), 3, ceiling=100)
    assert (low, high, stopped) == (100, 0, "100 fits, and no larger size was tried")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """One for all."""
    opened = open_sandbox("process", warn=lambda text: None)
    yield opened
    opened.close()


def test_nothing_repeats_in_a_unit_without_blocks(tmp_path: Path, sandbox: Sandbox) -> None:
    with ahead(tmp_path, sandbox, "plain") as unit:
        (facts,) = unit.facts([Variant(remat=True)], ["train"])
    assert "no block to checkpoint" in facts["train"]["refused"]["text"]


def test_blocks_are_recomputed(tmp_path: Path, sandbox: Sandbox) -> None:
    with ahead(tmp_path, sandbox, "blocks") as unit:
        plain, remat = unit.facts([Variant(), Variant(remat=True)], ["train"])
    assert (plain["train"]["checkpoints"], remat["train"]["checkpoints"]) == (0, 3)
