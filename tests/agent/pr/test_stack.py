"""Which units share a request, and which request stands on which."""

from __future__ import annotations

import subprocess

import pytest

from migrate_agent.agent.pr.stack import PREFIX, bottom, branch_of, single, stacked
from migrate_agent.tests.agent.pr.sheets import change

A, B, C, D = "a.py:A", "b.py:B", "c.py:C", "d.py:D"


@pytest.mark.parametrize(
    ("rows", "chains"),
    [
        ([], []),
        ([(A, "", "a")], [[[A]]]),
        ([(A, "", "a"), (B, A, "b")], [[[A], [B]]]),
        ([(A, "", "a"), (B, "", "b"), (C, A, "c")], [[[A], [C]], [[B]]]),
        ([(A, "", "a"), (B, "", "b"), (C, f"{A} {B}", "c")], [[[A], [B], [C]]]),
        ([(A, "", "a help"), (B, "", "b help")], [[[A], [B]]]),  # both change the file of helpers
        ([(A, B, "a"), (B, A, "b"), (C, B, "c")], [[[A, B], [C]]]),  # they need each other
        ([(A, C, "a"), (B, "", "b"), (C, A, "c")], [[[A, B, C]]]),  # what was committed between them goes along
        ([(A, B, "a"), (B, A, "b"), (C, D, "c"), (D, C, "d")], [[[A, B]], [[C, D]]]),
        ([(A, D, "a")], [[[A]]]),  # what it needs is not verified by itself (an abstract base)
    ],
)
def test_chains(rows: list[tuple[str, str, str]], chains: list[list[list[str]]]) -> None:
    found = stacked([change(unit, needs.split(), paths.split()) for unit, needs, paths in rows])
    assert [[list(piece.units) for piece in chain] for chain in found] == chains


def test_single_is_one_piece() -> None:
    ((piece,),) = single([change(A), change(B)])
    assert piece.units == (A, B) and piece.branch.startswith(PREFIX)
    assert single([]) == ()


def test_branches_are_names_that_git_takes_and_tell_units_apart() -> None:
    units = ["m.py:A", "m.py:A.B", ".x/m.py:A", "a..b.py:A", "a.lock/m.py:A", "a b/m~^:?.py:A", "m.py:Ünïcode", "x/.m.py:A"]
    branches = [branch_of(unit) for unit in units]
    for branch in branches:
        assert subprocess.run(["git", "check-ref-format", "--branch", branch], capture_output=True, check=False).returncode == 0, branch
    assert len(set(branches)) == len(units)


def test_bottom_is_the_first_that_fits_else_the_last() -> None:
    assert bottom(["a", "", "b", "c"], lambda commit: commit == "b") == "b"
    assert bottom(["a", "b", "c"], lambda commit: False) == "c"
