"""Sizes that a relation may tie: what goes along with a size that becomes another."""

from __future__ import annotations

import pytest

from migrate_agent.tools.harness.common.tied_sizes import along, tied


@pytest.mark.parametrize(
    ("size", "other", "new", "expected", "why"),
    [
        (5, 9, 6, 11, "2T - 1 distances"),
        (5, 6, 6, 7, "a token more"),
        (5, 20, 7, 28, "four times as many"),
        (5, 21, 7, 29, "four times as many, and one"),
        (12, 3, 24, 6, "a quarter"),
        (3, 12, 4, 16, "rows of four columns"),
        (32, 16, 64, 64, "patches of eight by eight"),
        (4, 16, 5, 25, "a square"),
        (4, 17, 5, 26, "a square and a class token"),
        (4, 49, 5, 81, "distances in a square window"),
        (16, 4, 25, 5, "a root"),
        (4, 6, 5, 10, "pairs"),
        (4, 10, 5, 15, "pairs, each with itself"),
    ],
)
def test_what_a_relation_makes_of_another_size(size: int, other: int, new: int, expected: int, why: str) -> None:
    assert expected in along(size, other, new), why


def test_nothing_stays_or_is_broadcast() -> None:
    assert along(4, 3, 2) == []  # one less: an axis of 1
    assert 9 not in along(5, 9, 6)


def test_others_go_along_alone_and_together() -> None:
    tables = list(tied(3, 4, [6, 2]))
    assert {3: 4, 6: 8} in tables
    assert {3: 4, 2: 3} in tables
    assert {3: 4, 6: 8, 2: 3} in tables
    assert [len(table) for table in tables] == sorted(len(table) for table in tables)
    assert list(tied(3, 4, [])) == []
