"""What varies over calls, and whether padding is exact: for each row of a batch, for a mean over it, and for a mean under a mask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate_agent.sandbox import open_sandbox
from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tests.tools.portable.units import ahead
from migrate_agent.tools.portable.recompile import VaryingAxis, bucket, try_padding, varying_axes


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """One for all."""
    opened = open_sandbox("process", warn=lambda text: None)
    yield opened
    opened.close()


def test_programs_are_counted_and_axes_named() -> None:
    calls = [[((2, size), "int32"), ((4,), "float32")] for size in (7, 9, 7, 30)]
    assert varying_axes(calls) == (3, (VaryingAxis(0, 1, (7, 9, 30)),))
    assert varying_axes(calls[:1]) == (1, ())
    assert [bucket(size) for size in (1, 8, 9, 64, 65)] == [8, 8, 16, 64, 128]


@pytest.mark.parametrize(("body", "exact"), [("plain", True), ("mean", False)])
def test_padding_a_batch_is_exact_where_rows_do_not_meet(tmp_path: Path, sandbox: Sandbox, body: str, exact: bool) -> None:
    with ahead(tmp_path, sandbox, body, shape="5, 16", width=16) as unit:
        found = try_padding(unit, "batch", [5, 6, 13])
    assert (found.exact, found.buckets, found.mask) == (exact, (8, 16), None)
    assert (found.why == "") is exact


def test_a_length_is_padded_exactly_under_its_mask(tmp_path: Path, sandbox: Sandbox) -> None:
    with ahead(tmp_path, sandbox, "masked", shape="2, 5, 16), torch.ones(2, 5, dtype=torch.bool", width=16) as unit:
        found = try_padding(unit, "length", [5, 11])
    assert (found.exact, found.mask) == (True, False), found
