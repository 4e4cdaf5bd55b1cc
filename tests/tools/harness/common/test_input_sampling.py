"""Sampled states and inputs."""

from __future__ import annotations

import numpy as np
import pytest

from migrate_agent.tools.harness.common import budgets, input_sampling

STATE = {
    "weight": np.linspace(-1, 1, 20),
    "bias": np.zeros(4),
    "scale": np.ones(4),
    "tied": np.linspace(-1, 1, 20),
    "running_mean": np.zeros(4),
    "running_var": np.ones(4),
    "mask": np.tril(np.ones((3, 3))),
    "hidden": np.array([0.0, -np.inf]),
    "index": np.arange(5),
}


PARAMETERS = frozenset({"weight", "bias", "scale", "tied"})


def test_states_are_randomised_but_stay_possible() -> None:
    drawn = input_sampling.sample_state(STATE, PARAMETERS, {"tied": "weight"}, (0,), 1.0)
    for name in ("weight", "bias", "scale", "running_mean", "running_var"):
        assert (drawn[name] != STATE[name]).all()
        np.testing.assert_array_equal(drawn[name], drawn[name].astype(np.float32))
    assert (drawn["running_var"] > 0).all()
    for name in ("mask", "hidden", "index"):
        np.testing.assert_array_equal(drawn[name], STATE[name])
    np.testing.assert_array_equal(drawn["tied"], drawn["weight"])


def test_inputs_are_like_the_recorded_ones() -> None:
    recorded = [np.random.default_rng(0).uniform(0, 1, (4, 5)), np.array([3, 7, 7]), np.array([True, False]), np.array([0.0, -np.inf, 0.0])]
    drawn = input_sampling.sample_inputs([input_sampling.Leaf(value, "float32") for value in recorded], (1,), None)
    assert (drawn[0] >= 0).all() and (drawn[0] <= 1).all() and not (drawn[0] == recorded[0]).all()
    assert set(drawn[1]) <= {3, 7} and drawn[2].dtype == bool
    assert set(drawn[3]) <= {0.0, -np.inf}


def test_edges_move_one_kind_and_leave_masks_alone() -> None:
    leaves_given = [
        input_sampling.Leaf(np.linspace(1, 2, 6), "float32"),
        input_sampling.Leaf(np.array([0.0, 1.0, 1.0]), "float32"),
        input_sampling.Leaf(np.arange(3), "int64"),
    ]
    found = input_sampling.edges(leaves_given, budgets.LARGE)
    assert np.isnan(found["nan"][0]).sum() == 1 and (found["negative"][0] < 0).all()
    assert np.signbit(found["minus-zeros"][0]).all() and not found["minus-zeros"][0].any()
    assert (found["highest"][2] == 2).all() and (found["highest"][0] == leaves_given[0].value).all()
    masks = input_sampling.edges(leaves_given[1:2], budgets.LARGE)
    for name, values in found.items():
        assert name in masks or (values[1] == leaves_given[1].value).all()
        assert name not in masks or (values[0] == leaves_given[0].value).all()
    assert all(np.isin(values[0], (0.0, 1.0)).all() for values in masks.values())


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (np.array([[True, True, False], [False, True, True]]), "one-true"),
        (np.array([[1, 0, 1], [1, 1, 1]]), "one-bit"),
        (np.array([[0.0, 1, 1], [1, 0, 0]]), "masks-one"),
        (np.array([[0.0, -np.inf], [0.0, 0.0]]), ""),
        (np.array([[3, 0], [1, 2]]), ""),
        (np.linspace(-1, 1, 6), ""),
    ],
)
def test_masks_choose_one_element(value: np.ndarray, name: str) -> None:
    leaves = [input_sampling.Leaf(value, value.dtype.name)]
    for found in (input_sampling.edges(leaves, budgets.LARGE), input_sampling.gradient_edges(leaves, budgets.LARGE)):
        chosen = {label: values[0] for label, values in found.items() if label in ("one-true", "one-bit", "masks-one")}
        assert set(chosen) == ({name} if name else set())
        assert all(one.sum() == 1 and one.dtype == value.dtype for one in chosen.values())


def test_rows_are_made_equal() -> None:
    batch, other = np.arange(6.0).reshape(3, 2), np.arange(2.0)
    found = input_sampling.equal_rows([input_sampling.Leaf(batch, "float32"), input_sampling.Leaf(other, "float32")], [batch, other])
    assert found is not None and (found[0] == batch[0]).all() and (found[1] == other).all()
    assert input_sampling.equal_rows([input_sampling.Leaf(batch[:1], "float32")], [batch[:1]]) is None


def test_probabilities_are_never_infinite() -> None:
    signal, share = input_sampling.Leaf(np.linspace(-1, 2, 6), "float32"), input_sampling.Leaf(np.linspace(0, 1, 6), "float32")
    found = input_sampling.edges([signal, share], 1e3)
    assert [np.isinf(value).any() for value in found["minus-inf"]] == [True, False]
    assert [np.isnan(value).any() for value in found["nan"]] == [True, True]
    assert np.isinf(input_sampling.edges([share], 1e3)["inf"][0]).any()


def test_extremes_are_told_of_inputs_that_exist() -> None:
    signal = input_sampling.Leaf(np.linspace(1, 2, 6), "float32")
    assert set(input_sampling.EXTREMES) <= set(input_sampling.edges([signal], budgets.LARGE))


MASK = np.array([[0.0, 1, 1], [1, 0, 0]])


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        (MASK, 0.0, 1.0),
        (4 * MASK - 2, -2.0, 2.0),
        (np.ones((2, 3)), 0.0, 1.0),  # masks nothing
        (np.zeros((2, 3)), 0.0, 1.0),  # a state that starts at zero
        (np.full((2, 3), 3.0), 0.0, 3.0),
    ],
)
def test_masks_are_graded(value: np.ndarray, low: float, high: float) -> None:
    beyond, between = input_sampling.graded_masks([input_sampling.Leaf(value, "float32"), input_sampling.Leaf(np.arange(6.0), "float32")])
    assert (beyond[0] < low).any() and (beyond[0] > high).any()
    assert between[0].min() >= low and between[0].max() <= high and not np.isin(between[0], (low, high)).all()
    assert (beyond[1] == np.arange(6.0)).all()


@pytest.mark.parametrize("value", [np.arange(6.0), np.array([0.0, -np.inf, 0.0]), np.array([True, False, True]), np.zeros((0, 3))])
def test_what_is_no_finite_mask_is_not_graded(value: np.ndarray) -> None:
    assert input_sampling.graded_masks([input_sampling.Leaf(value, "float32")]) == []


def test_shape_variants_say_what_they_change() -> None:
    variants = input_sampling.shape_variants([input_sampling.Leaf(np.ones((4, 6)), "float32")], 0)
    assert {variant.label: variant.kind for variant in variants} == {
        "batch9": "batch",
        "batch1": "batch",
        "empty": "empty",
        "size6-7": "size",
        "axis1-1": "one",
        "axis1-3": "axis",
        "size6-3": "size",
    }


@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (2, 3, 4)])
def test_far_inputs_have_the_shape_of_the_recorded_ones(shape: tuple[int, ...]) -> None:
    value = np.full(shape, 0.5) + np.arange(int(np.prod(shape))).reshape(shape) / 8
    found = input_sampling.far_inputs([input_sampling.Leaf(value, "float32")], [value])
    assert {"offset-100", "huge", "zero-rows"} <= set(found)
    assert all(np.shape(one) == shape for values in found.values() for one in values)
    first = found["zero-rows"][0] if shape == () else found["zero-rows"][0][0]
    assert not np.any(first)
