"""What is told of initial values, of keys of draws, and of gradients that jump."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from flax import nnx

from migrate_agent.tools.harness.common import budgets, input_sampling, tolerances
from migrate_agent.tools.harness.common.input_sampling import Array, Leaf
from migrate_agent.tools.harness.jax_side.structure import changed
from migrate_agent.tools.harness.torch_side.module import Result
from migrate_agent.tools.verify.candidate.native import reused_keys
from migrate_agent.tools.verify.compare.initial_values import Sample, copies, distribution_problem, structure_problem
from migrate_agent.tools.verify.original.outputs import unsteady

SHAPE = (24, 8)
COUNT = 16


def normal(generator: np.random.Generator) -> Array:
    return np.asarray(generator.standard_normal(SHAPE))


def by_thirds(generator: np.random.Generator) -> Array:
    return np.asarray(normal(generator) * np.repeat([0.1, 0.2, 0.4], 8)[:, None])


def by_thirds_reversed(generator: np.random.Generator) -> Array:
    return by_thirds(generator)[::-1]


def tiled(generator: np.random.Generator) -> Array:
    return np.tile(generator.standard_normal((1, 8)), (24, 1))


def orthogonal(generator: np.random.Generator) -> Array:
    return np.asarray(np.linalg.qr(normal(generator))[0]) * 24**0.5


def unit_rows(generator: np.random.Generator) -> Array:
    values = normal(generator)
    return np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True) * 8**0.5).astype(np.float32)


def unit_columns(generator: np.random.Generator) -> Array:
    values = normal(generator)
    return np.asarray(values / np.linalg.norm(values, axis=0) * 24**0.5).astype(np.float32)


def unit_whole(generator: np.random.Generator) -> Array:
    values = normal(generator)
    return np.asarray(values / np.linalg.norm(values) * 192**0.5)


def centred(generator: np.random.Generator) -> Array:
    values = normal(generator)
    return np.asarray(values - values.mean(axis=0))


def drawn(draw: Callable[[np.random.Generator], Array], seed: int) -> Array:
    return np.stack([draw(np.random.default_rng([seed, index])).reshape(-1) for index in range(COUNT)])


@pytest.mark.parametrize(
    ("theirs", "ours", "told"),
    [
        (normal, normal, ""),
        (by_thirds, by_thirds, ""),
        (orthogonal, orthogonal, ""),
        (tiled, tiled, ""),
        (unit_rows, unit_rows, ""),
        (unit_columns, unit_columns, ""),
        (unit_whole, unit_whole, ""),
        (centred, centred, ""),
        (unit_columns, normal, "along axis 0 torch's constructions all have the same length"),
        (unit_columns, unit_whole, "along axis 0 torch's constructions all have the same length"),
        (normal, unit_columns, "along axis 0 the constructions all have the same length"),
        (normal, unit_whole, "along axis 0, 1 the constructions all have the same length"),
        (centred, normal, "along axis 0 torch's constructions all have the same sum"),
        (by_thirds, by_thirds_reversed, "of axis 0"),
        (normal, tiled, "repeat"),
        (orthogonal, normal, "orthogonal"),
    ],
)
def test_structure_of_initial_values(
    theirs: Callable[[np.random.Generator], Array], ours: Callable[[np.random.Generator], Array], told: str
) -> None:
    problem = structure_problem(Sample(drawn(theirs, 0)), Sample(drawn(ours, 1)), SHAPE, tolerances.INIT_ALPHA)
    assert told in problem and bool(told) == bool(problem), problem


def test_a_repetition_by_chance_is_none() -> None:
    theirs, ours = (np.random.default_rng(seed).random((512, 4)) for seed in (0, 1))
    ours[77, 3] = ours[77, 0]
    assert not structure_problem(Sample(theirs), Sample(ours), (4,), tolerances.INIT_ALPHA)
    ours[:, 3] = ours[:, 0]
    assert "repeat" in structure_problem(Sample(theirs), Sample(ours), (4,), tolerances.INIT_ALPHA)


def test_multiples_of_each_other_are_copies() -> None:
    one, other = drawn(normal, 0), drawn(normal, 1)
    third = one.astype(np.float32) * np.float32(3**-0.5)
    found = copies({"a": one, "b": other, "c": 0.5 * one, "d": third, "zeros": 0 * one, "more": 0 * one, "still": one[:1] + 0 * one})
    assert found == {frozenset(pair) for pair in (("a", "c"), ("a", "d"), ("c", "d"))}


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_copies_by_chance_are_none(size: int) -> None:
    every = np.random.default_rng(0).normal(size=(400, 8, size)).astype(np.float32)
    values = dict(zip(map(str, range(400)), every, strict=True))
    assert not copies(values)
    assert copies(values | {"copy": 2 * values["7"]}) == {frozenset(["7", "copy"])}


@pytest.mark.parametrize(
    ("kinds", "keys", "told"),
    [
        (["_bernoulli", "_bernoulli"], [[1, 2], [3, 4]], ""),
        (["_bernoulli", "_uniform"], [[1, 2], [1, 2]], ""),
        (["_bernoulli", "_bernoulli"], [[1, 2], [1, 2]], "draws 1 and 2 use the same keys"),
        (["_normal"], [[5, 5]], "draw 1 of 1 uses the same key at every call"),
    ],
)
def test_keys_of_draws(kinds: list[str], keys: list[list[int]], told: str) -> None:
    assert reused_keys([(kind, None) for kind in kinds], [[np.array([key]) for key in row] for row in keys]) == told


def test_gradients_that_jump_are_named() -> None:
    at = Result(arrays={"out/0": np.zeros(2), "grad/a": np.array([1.0, 0.0]), "grad/b": np.ones(2)})
    near = Result(arrays={"out/0": np.zeros(2), "grad/a": np.array([1.0, 1.0]), "grad/b": np.ones(2) * (1 + 1e-6)})
    assert unsteady(at, [near, at]) == ["grad/a"]
    assert unsteady(at, [None]) == ["grad/a", "grad/b"]


def test_inputs_at_which_gradients_are_delicate() -> None:
    values = np.random.default_rng(0).standard_normal((4, 5))
    mask = np.array([[0.0, 1.0, 1.0, 0.0]])
    found = input_sampling.gradient_edges([Leaf(values, "float32"), Leaf(mask, "float32")], budgets.LARGE)
    assert set(found) == {"zeros", "large", "levels", "equal-rows", "masks-lowest", "masks-highest", "masks-one"}
    assert set(np.unique(np.abs(found["levels"][0]))) >= {0.0, 1.0}
    assert (found["masks-lowest"][1] == 0).all() and (found["zeros"][1] == mask).all()


def test_shapes_that_are_tried() -> None:
    leaf = Leaf(np.random.default_rng(0).standard_normal((4, 6)), "float32")
    shapes = {label: values[0].shape for label, _, values, _ in input_sampling.shape_variants([leaf], 0)}
    assert shapes["batch9"] == (9, 6) and shapes["batch1"] == (1, 6) and shapes["empty"] == (0, 6) and shapes["axis1-1"] == (4, 1)


def test_what_draws_are_cut_off_to_may_be_rounded_otherwise() -> None:
    def cut(seed: int, low: float) -> Sample:
        return Sample(np.maximum(np.random.default_rng(seed).random((512, 8)), low).astype(np.float32))

    assert distribution_problem(cut(0, 0.5), cut(1, 0.5 + 2e-7), tolerances.INIT_ALPHA)[0] == ""
    assert "another distribution" in distribution_problem(cut(0, 0.5), cut(1, 0.501), tolerances.INIT_ALPHA)[0]
    assert "another distribution" in distribution_problem(cut(0, 0.0), cut(1, 0.5), tolerances.INIT_ALPHA)[0]


class Kept(nnx.Module):
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.names: Any = {}
        self.out: Any = nnx.data({})
        self.inner = nnx.List([nnx.Dict(count=0)])


def test_attributes_that_a_call_changes_are_named() -> None:
    module = Kept()
    first = nnx.graphdef(module)
    assert not changed(first, nnx.graphdef(module))
    module.names, module.inner[0].count = {"a": 1}, 1
    second = nnx.graphdef(module)
    assert changed(first, second) == ["inner.0.count", "names"]
    module.out["x"] = jax.numpy.ones(2)
    assert changed(second, nnx.graphdef(module)) == ["out.x"]
