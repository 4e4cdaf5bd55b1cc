"""Lengths of packed sequences in inputs that are drawn or resized."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from migrate_agent.tools.harness.common import budgets, input_sampling
from migrate_agent.tools.harness.common.input_sampling import Array, Leaf
from migrate_agent.tools.harness.packed_lengths import Packed, PackedLengths, step_axes

FALLING = PackedLengths(axes=((0, 1),), least=1, most=6, full=True, falling=True)
ANY_ORDER = replace(FALLING, falling=False)
SHORTER = replace(ANY_ORDER, full=False)


def batch(lengths: list[int], noted: PackedLengths) -> list[Leaf]:
    """Sequences of 6 steps and their lengths."""
    values = np.random.default_rng(0).standard_normal((len(lengths), 6, 4))
    return [Leaf(values, "float32"), Leaf(np.array(lengths), "int64", noted)]


def drawn(leaves: list[Leaf]) -> Iterator[list[Array]]:
    """New inputs of several seeds."""
    return (input_sampling.sample_inputs(leaves, (seed,), None) for seed in range(20))


def resized(leaves: list[Leaf]) -> Iterator[list[Array]]:
    """Inputs of other sizes, with samples and steps in them."""
    others = [
        *(variant.values for variant in input_sampling.shape_variants(leaves, 0)),
        *(values for _, values in input_sampling.alone_variants(leaves, 0)),
    ]
    return (values for values in others if values[0].shape[0] == values[1].shape[0] > 0)


def edges(leaves: list[Leaf]) -> Iterator[list[Array]]:
    """Inputs at edges, and with equal rows."""
    yield from input_sampling.edges(leaves, budgets.LARGE).values()
    yield input_sampling.equal_rows(leaves, input_sampling.recorded_inputs(leaves)) or []


@pytest.mark.parametrize("inputs", [drawn, resized, edges])
@pytest.mark.parametrize(
    ("lengths", "noted"),
    [([6, 4, 1], FALLING), ([6, 6, 6], FALLING), ([2, 6, 3], ANY_ORDER), ([3, 6, 3], SHORTER)],
    ids=("falling", "all full", "any order", "none is full in every batch"),
)
def test_lengths_may_be_packed(inputs: Callable[[list[Leaf]], Iterator[list[Array]]], lengths: list[int], noted: PackedLengths) -> None:
    proposed = list(inputs(batch(lengths, noted)))
    assert proposed
    for padded, value in proposed:
        steps = padded.shape[1]
        assert value.dtype == np.int64 and value.min() >= 1 and value.max() <= steps
        assert not noted.full or value.max() == steps
        assert not noted.falling or (np.diff(value) <= 0).all()


def test_draws_are_not_all_alike() -> None:
    assert len({tuple(values[1]) for values in drawn(batch([6, 6, 6], FALLING))}) > 5
    assert any(values[1].max() < 6 for values in drawn(batch([2, 6, 3], SHORTER)))


@pytest.mark.parametrize("falling", [False, True])
def test_samples_of_a_mask_are_drawn_whole(falling: bool) -> None:
    mask = np.arange(6)[None] < np.array([6, 4, 1])[:, None]
    noted = PackedLengths(axes=((0, 1),), least=0, most=1, full=True, falling=falling, batch=0)
    results = [value for (value,) in drawn([Leaf(mask, "bool", noted)])]
    assert all(value.sum(1).max() == 6 and {*value.sum(1)} <= {6, 4, 1} for value in results)
    assert len({value.tobytes() for value in results}) > 2
    assert not falling or all((np.diff(value.sum(1)) <= 0).all() for value in results)


def test_tokens_are_drawn_where_tokens_are() -> None:
    tokens = np.array([[3, 1, 4, 2], [5, 9, 0, 0]])
    noted = PackedLengths(axes=((0, 1),), least=0, most=9, full=True, falling=True, batch=0)
    results = [value for (value,) in drawn([Leaf(tokens, "int64", noted)])]
    assert all(value[0].all() and (value != 0).sum(1)[1] in (2, 4) for value in results)
    assert len({value[0].tobytes() for value in results}) > 5


def test_longer_steps_lengthen_a_mask() -> None:
    mask = np.arange(4)[None] < np.array([4, 2])[:, None]
    noted = PackedLengths(axes=((0, 1),), least=0, most=1, full=True, falling=True, batch=0)
    (value,) = input_sampling.resized([Leaf(mask, "bool", noted)], {4: 5}, None, (0,)) or []
    assert value.tolist() == [[True] * 5, [True, True, True, False, False]]


def test_other_recorded_lengths_have_another_longest() -> None:
    leaves = batch([6, 4, 1], FALLING)
    longer = input_sampling.with_values(leaves, input_sampling.resized(leaves, {6: 8}, None, (0,)) or [])
    assert all(values[1].max() == 8 for values in drawn(longer))


@pytest.mark.parametrize(
    ("shapes", "axis", "expected"),
    [
        ([(3, 6, 4), (3,)], 1, ((0, 1),)),
        ([(6, 3, 4), (3,)], 0, ((0, 0),)),
        ([(3, 6), (3, 6), (3,)], 0, ((0, 1), (1, 1))),  # turned before it is packed
        ([(3, 3), (3,)], 1, ()),
        ([(3, 10, 4), (3,)], 1, ((0, 1),)),  # half as many steps are packed
    ],
)
def test_where_steps_stand(shapes: list[tuple[int, ...]], axis: int, expected: tuple[tuple[int, int], ...]) -> None:
    assert step_axes(shapes, Packed((6, 2, 1), 6, axis), 10) == expected
