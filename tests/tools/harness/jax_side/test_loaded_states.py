"""What a candidate tells of the state that was loaded into it."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from flax import nnx

from migrate_agent.tools.harness.jax_side.module import Candidate, split


class Layers(nnx.Module):
    """Arrays in torch's order of axes and in others, statistics, a parameter without elements, and one that is tied."""

    tied_names = {"again.weight": "linear.weight"}  # noqa: RUF012

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.conv = nnx.Conv(3, 5, (2, 4), rngs=rngs)
        self.linear = nnx.Linear(3, 2, rngs=rngs)
        self.norm = nnx.BatchNorm(5, rngs=rngs)
        self.empty = nnx.Param(np.zeros((0, 3)))
        self.counter = nnx.Variable(np.zeros((), np.int32))

    def __call__(self, x: Any) -> Any:
        return self.linear(x)


@pytest.fixture
def candidate() -> Candidate:
    made = Candidate(__name__, "Layers", {"init": "rngs=rngs", "setup": "", "call": ""}, None, exact=False)
    generator = np.random.default_rng(0)
    state = {name: np.asarray(generator.standard_normal(shape), np.float32) for name, shape in made.shapes().items()}
    made.load(state | {"again.weight": state["linear.weight"]})
    return made


def test_shapes_are_those_of_the_state(candidate: Candidate) -> None:
    assert candidate.shapes() == {name: list(value.shape) for name, value in candidate.state().items()}


def test_what_was_loaded_is_told_again(candidate: Candidate) -> None:
    loaded, state = candidate.as_loaded(), candidate.state()
    assert candidate.keeps_all and loaded.keys() == state.keys()
    for name, value in state.items():
        np.testing.assert_array_equal(loaded[name], value)


def test_origins_give_the_arrays_of_the_parts(candidate: Candidate) -> None:
    state, origins, kernel = candidate.state(), candidate.origins(), candidate.model.conv.kernel.get_value()
    name, axes = origins[id(kernel)]
    assert name == "conv.weight"
    np.testing.assert_array_equal(state[name].transpose(axes), kernel)
    _, trainable, rest = split(candidate.model)
    for value in jax.tree.leaves((trainable, rest)):
        name, axes = origins[id(value)]
        np.testing.assert_array_equal(state[name].transpose(axes), value)


def test_an_array_that_a_call_wrote_has_no_origin(candidate: Candidate) -> None:
    candidate.model.linear.bias.set_value(candidate.model.linear.bias.get_value() + 1)
    assert id(candidate.model.linear.bias.get_value()) not in candidate.origins()


def test_kinds_are_told_by_the_part_that_a_leaf_stands_in(candidate: Candidate) -> None:
    buffers = {"norm.running_mean", "norm.running_var", "empty", "counter"}
    assert candidate.kinds() == {name: "buffer" if name in buffers else "parameter" for name in candidate.shapes()}
    candidate.__dict__["_places"] = {}
    told = candidate.kinds()
    candidate._located = lambda *parts: None  # type: ignore[method-assign]
    candidate.__dict__["_places"] = {}
    assert candidate.kinds() == told
