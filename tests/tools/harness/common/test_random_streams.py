"""How random numbers are drawn where a scenario draws them otherwise."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from migrate_agent.tools.harness.common import budgets
from migrate_agent.tools.harness.common.random_streams import USUAL, Customs, Drawing, Dropped, Stream, layouts, masks, spread, zeroed

MASKS: list[Any] = [["bernoulli", [4, 6, 6], 0.9], ["uniform", [2], None], ["bernoulli", [4, 1, 5], 0.5], ["bernoulli", [6, 4, 6], 0.9]]


@pytest.mark.parametrize(
    "drawing",
    [
        USUAL,
        Drawing("low"),
        Drawing(dropped=Dropped()),
        Drawing("high", Dropped(3, (20, 0.5), (4, 0))),
        Drawing("high", None, (0.25, 0.5)),
    ],
)
def test_drawings_travel_as_json(drawing: Drawing) -> None:
    assert Drawing.of(json.loads(json.dumps(drawing))) == drawing


@pytest.mark.parametrize(
    ("compared", "rate", "kept"),
    [
        ([0.3], 0.7, [False, True]),
        ([0.3], 0.3, [True, False]),
        ([0.3, 0.1], 0.9, [True, True]),
        ([0.3], 0.71, None),
        ([0.5], 0.5, None),
        ([], 0.7, None),
        ([0.3], None, None),
    ],
    ids=("above", "below", "another number", "another rate", "either side", "nothing compared", "an unknown rate"),
)
def test_a_mask_is_drawn_as_a_comparison(compared: list[float], rate: float | None, kept: list[bool] | None) -> None:
    stream = Stream(0, Drawing("low", ends=(0.2, 0.4)), customs=Customs(tuple(compared)))
    found = stream.mask((2,), rate)
    if kept is None:
        assert found is True and stream.log() == [["bernoulli", [2], rate]] and not stream.crossed
    else:
        assert found.tolist() == kept and stream.log() == [["uniform", [2], None]] and stream.crossed == [[[2], rate]]


def test_uniform_numbers_fall_at_either_end() -> None:
    usual, low, high = (Stream(0, Drawing(tilt)).draw("uniform", (3, 3)) for tilt in ("", "low", "high"))
    first = np.arange(9).reshape(3, 3) % 2 == 0
    np.testing.assert_array_equal(low[first], usual[first] * budgets.TILT)
    np.testing.assert_array_equal(high[~first], usual[~first] * budgets.TILT)
    assert (low[~first] > 1 - budgets.TILT).all() and (high[first] > 1 - budgets.TILT).all() and max(low.max(), high.max()) < 1
    np.testing.assert_array_equal(Stream(0, Drawing("low")).draw("normal", (3,)), Stream(0).draw("normal", (3,)))


@pytest.mark.parametrize(
    ("dropped", "zeros"),
    [
        (Dropped(), [1.0, 1.0, 1.0]),
        (Dropped(1), [0.0, 1.0, 0.0]),
        (Dropped(mask=(144, 0.9)), [1.0, 0.0, 1.0]),
        (Dropped(mask=(144, 0.9), axis=(6, 1)), [1 / 6, 0.0, 1 / 6]),
        (Dropped(mask=(144, 0.9), axis=(4, 0)), [0.25, 0.0, 0.25]),
        (Dropped(mask=(144, 0.9), axis=(7, 0)), [0.0, 0.0, 0.0]),
    ],
)
def test_masks_are_dropped(dropped: Dropped, zeros: list[float]) -> None:
    stream = Stream(0, Drawing(dropped=dropped))
    found = [np.broadcast_to(stream.mask(shape, rate), shape) for kind, shape, rate in MASKS if kind == "bernoulli"]
    assert [float(1 - mask.mean()) for mask in found] == pytest.approx(zeros)
    assert [draw[0] for draw in stream.log()] == ["bernoulli"] * 3


def test_masks_follow_what_is_given() -> None:
    rows = np.stack([Dropped(mask=(20, 0.5), axis=(5, 0)).kept(0, [4, 1, 5], 0.5), Dropped().kept(1, [3], 0.1)])
    stream = Stream(0, kept=rows)
    assert stream.mask([4, 1, 5], 0.5)[..., 0].sum() == 0 and stream.drawing == USUAL
    assert not np.any(stream.mask([3], 0.1)) and not np.any(stream.mask([3], 0.1))  # of more masks than rows, the last one counts


@pytest.mark.parametrize(
    ("draws", "expected"),
    [
        ([], []),
        ([["uniform", [2], None]], []),
        ([["bernoulli", [3], 0.5]], [Dropped(), Dropped(mask=(3, 0.5), axis=(3, 0))]),
        (
            MASKS[:3],
            [
                Dropped(),
                Dropped(0),
                Dropped(1),
                *(Dropped(mask=(20, 0.5), axis=(size, 0)) for size in (4, 5)),
                *(Dropped(mask=(144, 0.9), axis=axis) for axis in ((4, 0), (6, 0), (6, 1))),
            ],
        ),
    ],
)
def test_what_is_worth_dropping(draws: Any, expected: list[Dropped]) -> None:
    assert zeroed(draws) == expected


def test_of_many_masks_those_of_a_kind_are_dropped() -> None:
    found = zeroed([row for row in MASKS * budgets.DROPPED if row[0] == "bernoulli"])
    assert [one for one in found if one.axis is None] == [Dropped(), Dropped(mask=(144, 0.9)), Dropped(mask=(20, 0.5))]


def test_masks_that_are_transposed_are_alike() -> None:
    assert layouts([MASKS[0]]) == layouts([MASKS[3]])
    assert layouts([["bernoulli", [4, 5], 0.5]]) == layouts([["bernoulli", [5, 1, 4], 0.5]]) != layouts([["bernoulli", [20], 0.5]])
    assert masks(MASKS) == [(144, 0.9), (20, 0.5), (144, 0.9)]


def test_parts_of_a_mask_broadcast() -> None:
    kept = np.ones(7, bool)
    assert spread(kept, (2, 1, 3)).shape in {(), (2, 1, 3)} and np.all(spread(kept, (2, 1, 3)))
