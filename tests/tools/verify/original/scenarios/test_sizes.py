"""Inputs of other shapes than the example's: what is proposed."""

from __future__ import annotations

import numpy as np
import pytest

from migrate_agent.tools.harness.common.input_sampling import Leaf, alone_variants, multiples, stacked


def leaves(*shapes: tuple[int, ...]) -> list[Leaf]:
    """Inputs of these shapes."""
    return [Leaf(np.random.default_rng(number).standard_normal(shape), "float64") for number, shape in enumerate(shapes)]


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([(2, 5, 6)], []),
        ([(2, 5, 6), (2, 7, 6)], [(0, (2, 5, 7)), (1, (2, 7, 7)), (0, (3, 5, 6)), (1, (3, 7, 6))]),
        ([(2, 5, 6), (2, 5)], [(0, (2, 6, 6)), (1, (2, 6)), (0, (3, 5, 6)), (1, (3, 5))]),
        ([(2, 4, 4)], [(0, (2, 5, 4)), (0, (2, 4, 5))]),
        ([(2,), ()], []),
        ([], []),
    ],
    ids=("all different", "two agree", "of two ranks", "a square", "a scalar", "none"),
)
def test_one_input_alone_is_longer(shapes: list[tuple[int, ...]], expected: list[tuple[int, tuple[int, ...]]]) -> None:
    found = []
    for label, values in alone_variants(leaves(*shapes), 0):
        (changed,) = [number for number, (value, shape) in enumerate(zip(values, shapes, strict=True)) if value.shape != shape]
        assert label.startswith(f"size-of-input{changed}-")
        found.append((changed, values[changed].shape))
    assert found == expected


def test_all_but_one_are_longer_together() -> None:
    proposed = [[value.shape for value in values] for _, values in alone_variants(leaves((2, 5, 6), (2, 5, 7), (2, 5)), 0)]
    assert proposed[:4] == [
        [(2, 6, 6), (2, 5, 7), (2, 5)],
        [(2, 5, 6), (2, 6, 7), (2, 5)],
        [(2, 5, 6), (2, 5, 7), (2, 6)],
        [(2, 5, 6), (2, 6, 7), (2, 6)],
    ]


@pytest.mark.parametrize(
    ("shapes", "divisors", "expected"),
    [
        ([(2, 11, 6)], [4], [[(2, 12, 6)], [(2, 13, 6)], [(2, 11, 8)], [(2, 11, 9)]]),
        ([(2, 11), (11, 3)], [4], [[(2, 12), (12, 3)], [(2, 13), (13, 3)]]),
        ([(2, 12, 13)], [4], []),
        ([(2, 11)], [40], []),
        ([(11,)], [4], []),
        ([], [4], []),
    ],
    ids=("each axis", "wherever the size stands", "divided, or all but one", "far more", "a batch", "none"),
)
def test_sizes_that_a_number_divides(shapes: list[tuple[int, ...]], divisors: list[int], expected: list[list[tuple[int, ...]]]) -> None:
    assert [[value.shape for value in values] for _, values in multiples(leaves(*shapes), divisors, 0)] == expected


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([(4, 6)], [[(2, 4, 6)]]),
        ([(4, 6), (4, 6)], [[(2, 4, 6), (2, 4, 6)]]),
        ([(4, 6), (6,)], [[(2, 4, 6), (2, 6)], [(2, 4, 6), (6,)]]),
        ([(4, 6), ()], [[(2, 4, 6), ()]]),
        ([()], []),
        ([], []),
    ],
    ids=("one", "two", "of two ranks", "a scalar beside", "a scalar", "none"),
)
def test_one_more_axis_in_front(shapes: list[tuple[int, ...]], expected: list[list[tuple[int, ...]]]) -> None:
    first, second = ([leaf.value + shift for leaf in leaves(*shapes)] for shift in (0.0, 1.0))
    proposals = stacked(first, second)
    assert [[value.shape for value in values] for values in proposals] == expected
    for values in proposals:
        for value, one, other in zip(values, first, second, strict=True):
            if value.ndim > one.ndim:
                assert np.array_equal(value[0], one)
                assert np.array_equal(value[1], other)
