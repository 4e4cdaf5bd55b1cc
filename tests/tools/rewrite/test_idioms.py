"""The idioms of module code, from source to a mirror that computes, differentiates and keeps state as torch does, in float64."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import warnings
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from migrate_agent.tests.tools.compiling import unoptimised
from migrate_agent.tests.tools.rewrite.migrating import Calls, Migrated, compare, migrated

pytestmark = pytest.mark.ci  # all fixtures are rewritten at once, which takes its time; each rule has quick cases of its own

FIXTURES = Path(__file__).with_name("fixtures") / "idioms"


def _calls(path: Path) -> Calls:
    """The table that a fixture ends with."""
    spec = importlib.util.spec_from_file_location(f"fixture_{path.stem}", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spec.loader.exec_module(module)
    found: Calls = module.CALLS
    return found


CALLS = {path.stem: _calls(path) for path in sorted(FIXTURES.glob("*.py"))}
CASES = [(module, name) for module, calls in CALLS.items() for name in calls]
TRAINED = frozenset({"inherited", "own_train", "parametrised", "reversible", "state"})
"""Fixtures that are run in training mode, in which their state changes."""


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Migrated]:
    with unoptimised(), migrated(FIXTURES, CALLS, tmp_path_factory.mktemp("idioms")) as found:
        yield found


def test_nothing_is_left_open(work: Migrated) -> None:
    assert not [(hole.source, hole.span.line, hole.reason) for hole in work.draft.holes]


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad=True to a scalar")
@pytest.mark.parametrize(("module", "name"), CASES)
def test_as_torch(work: Migrated, module: str, name: str) -> None:
    compare(work, module, name, training=module in TRAINED)


def test_ones_are_made_by_their_own_function(work: Migrated) -> None:
    text = work.draft.files["initialising_jax.py"].partition("class Ones(")[2].partition("\nclass ")[0]
    assert "ones" in text and "full" in text and ", 1)" not in text and ", 1.0)" not in text and ", 0)" not in text, text


def test_sequences_grow_in_buffers_where_that_is_exact(work: Migrated) -> None:
    classes = {
        node.name: ast.unparse(node) for node in ast.parse(work.draft.files["growing_jax.py"]).body if isinstance(node, ast.ClassDef)
    }
    as_they_were = {"Bidirectional", "LastAlone", "OtherLimit"}
    assert {name for name in CALLS["growing"] if "jnp.concatenate" in classes[name]} == as_they_were
    assert {name for name in CALLS["growing"] if "nnx.fori_loop" in classes[name]} == CALLS["growing"].keys() - as_they_were


def test_all_steps_are_one_program(work: Migrated) -> None:
    graphdef, state = nnx.split(importlib.import_module("growing_jax").Cropped(rngs=nnx.Rngs(0)))

    def program(steps: int) -> str:
        return str(jax.make_jaxpr(lambda state, x: nnx.merge(graphdef, state)(x, steps))(state, jnp.zeros((2, 3), int)))

    assert len(program(4).splitlines()) == len(program(40).splitlines())


@pytest.mark.ci
def test_writes_to_parameters_leave_the_structure(work: Migrated) -> None:
    state = importlib.import_module("state_jax")
    numbers, image = jnp.ones((2, 4), "float32"), jnp.ones((2, 3, 6, 6), "float32")
    cases = ((state.ThroughData(4, rngs=nnx.Rngs(0)), numbers), (state.MaskedConv(3, 4, 3, rngs=nnx.Rngs(0)), image))
    for module, x in (*cases, (state.Bounded(5, 4, rngs=nnx.Rngs(0)), jnp.zeros((2, 3), int))):
        before = nnx.graphdef(module)
        module(x)
        assert nnx.graphdef(module) == before


def test_what_lambdas_initialise_is_assigned(work: Migrated) -> None:
    text = work.draft.files["initialising_jax.py"]
    assert "module.bias[...] = bias_init(rngs(), " in text and "lambda key, x: jnp.full_like(x, 0.25)" in text
    assert "scale_init=lambda key, w: init_normal(key, w, std=0.02)" in text and "lambda key, b: jnp.full_like(b, 0.5)" in text


def test_gradients_are_kept_where_calls_write_alone(work: Migrated) -> None:
    functions = [node for node in ast.parse(work.draft.files["initialising_jax.py"]).body if isinstance(node, ast.FunctionDef)]
    assert [node.name for node in functions if "keep_gradient" in ast.unparse(node)] == ["clip"]


def test_what_is_none_at_first_is_rewritten_as_what_it_becomes(work: Migrated) -> None:
    assert "self.table = self.table.astype(x.dtype)" in work.draft.files["kept_jax.py"]
