"""The pure parts: trees, sampling, comparison, localisation, signatures, optimisers."""

from __future__ import annotations

import copy
import warnings
from collections import namedtuple
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import torch
from flax import nnx
from hypothesis import given
from hypothesis import strategies as st

from migrate_agent.tools.harness.common import input_sampling, tensor_files, tolerances
from migrate_agent.tools.harness.common import trees as codec
from migrate_agent.tools.harness.common.compare_arrays import compare, quiet
from migrate_agent.tools.harness.common.random_streams import Stream
from migrate_agent.tools.harness.common.signatures import describe
from migrate_agent.tools.harness.common.training_steps import NumpyOptimiser
from migrate_agent.tools.harness.jax_side.structure import changed
from migrate_agent.tools.harness.torch_side.module import Result, copied
from migrate_agent.tools.harness.torch_side.precision import PairedDraws, Undefined, Undetermined
from migrate_agent.tools.harness.torch_side.rounding import RoundingNoise
from migrate_agent.tools.verify.checks.shared.native import _of_infinities, compare_native
from migrate_agent.tools.verify.checks.spec.signature import constructor_problem, parameters_problem
from migrate_agent.tools.verify.compare.initial_values import Sample, distribution_problem
from migrate_agent.tools.verify.compare.pairs import Pair
from migrate_agent.tools.verify.contract.scenario import UNKNOWN
from migrate_agent.tools.verify.original.outputs import tipped
from migrate_agent.tools.verify.original.scenarios import fill_values, source_literals
from migrate_agent.tools.verify.original.scenarios.writer import undetermined_reason
from migrate_agent.tools.verify.report.localise import Record, find
from migrate_agent.tools.verify.report.notes import left_out

Point = namedtuple("Point", "x y")


@dataclass
class Config:
    """Something that a unit might take."""

    size: int
    mask: Any = None


leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.just(np.arange(3)),
    st.builds(Point, st.integers(), st.none()),
)
trees = st.recursive(
    leaves, lambda inner: st.one_of(st.lists(inner), st.tuples(inner, inner), st.dictionaries(st.text(), inner)), max_leaves=8
)


def is_array(value: Any) -> bool:
    """The leaves of these tests."""
    return isinstance(value, np.ndarray)


@given(trees)
def test_trees_come_back(value: Any) -> None:
    found: list[Any] = []
    tree = codec.encode(value, found, is_array)
    back = codec.decode(tree, found, {})
    assert repr(back) == repr(value)
    assert len(codec.items(tree)) >= len(found)


def test_classes_are_found_under_their_new_module() -> None:
    leaves_of: list[Any] = []
    tree = codec.encode(Config(3, np.ones(2)), leaves_of, is_array)
    renamed = {"migrate_agent.tests.tools.verify.old": __name__}
    tree["dataclass"] = "migrate_agent.tests.tools.verify.old:Config"
    assert codec.decode(tree, leaves_of, renamed).size == 3


@pytest.mark.parametrize("value", [object(), {1.5: 2}, {1, 2}, print])
def test_what_cannot_travel_is_refused(value: Any) -> None:
    with pytest.raises(codec.Unencodable):
        codec.encode(value, [], is_array)


@pytest.mark.parametrize(("theirs", "ours"), [((1, 2), [1, 2]), ({"a": 1}, {"b": 1}), (None, 0), ((1,), (1, 2)), ("a", "b")])
def test_trees_of_other_form_differ(theirs: Any, ours: Any) -> None:
    skeletons = [codec.skeleton(codec.encode(value, [], is_array)) for value in (theirs, ours)]
    assert skeletons[0] != skeletons[1]


def test_arrays_come_back_from_files(tmp_path: Path) -> None:
    values = {"a": np.array(1.5), "b/c": np.ones((2, 3)).T, "c": np.array([1 + 2j, 0]), "d": np.array([True]), "e": np.zeros((0, 3))}
    tensor_files.save(tmp_path / "x/y.safetensors", values)
    back = tensor_files.load(tmp_path / "x/y.safetensors")
    assert back.keys() == values.keys()
    for name, value in values.items():
        np.testing.assert_array_equal(back[name], value)
        assert back[name].shape == value.shape


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
    found = input_sampling.edges(leaves_given, tolerances.LARGE)
    assert np.isnan(found["nan"][0]).sum() == 1 and (found["negative"][0] < 0).all()
    assert np.signbit(found["minus-zeros"][0]).all() and not found["minus-zeros"][0].any()
    assert (found["highest"][2] == 2).all() and (found["highest"][0] == leaves_given[0].value).all()
    masks = input_sampling.edges(leaves_given[1:2], tolerances.LARGE)
    for name, values in found.items():
        assert name in masks or (values[1] == leaves_given[1].value).all()
        assert name not in masks or (values[0] == leaves_given[0].value).all()
    assert all(np.isin(values[0], (0.0, 1.0)).all() for values in masks.values())


class Thresholds(torch.nn.Module):
    """Numbers in a function and a layer, none of them large."""

    def __init__(self) -> None:
        super().__init__()
        self.shrink = torch.nn.Hardshrink(0.4)
        self.limit, self.flag, self.many = 0.7, True, 10**6

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compares with a number that stands in it."""
        return torch.where(x <= -0.1, self.shrink(x), self.limit)


def test_numbers_of_the_code_become_inputs() -> None:
    numbers = source_literals.numbers(Thresholds())
    assert {0.4, 0.7, 0.1} <= set(numbers) and not {0.0, 1.0e6} & set(numbers)
    signal, mask = input_sampling.Leaf(np.linspace(1, 2, 40).reshape(4, 10), "float32"), input_sampling.Leaf(np.ones(3), "float32")
    found = source_literals.at([signal, mask, signal], numbers)
    assert found is not None and {0.4, -0.1} <= set(found[0].flat) and (found[1] == 1).all()
    assert 0 < np.mean(found[0] == found[2]) < 1
    assert source_literals.at([mask], numbers) is None and source_literals.at([signal], []) is None


FILLED: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "masked_fill": lambda scores, masked: scores.masked_fill(masked, -1e4),
    "mul": lambda scores, masked: scores + masked.double() * -1e4,
    "scalar_tensor": lambda scores, masked: torch.where(masked, -1e4, scores),
}


@pytest.mark.parametrize("name", FILLED)
def test_inputs_reach_numbers_that_decide_nothing(name: str) -> None:
    masked = torch.eye(6, dtype=torch.bool).logical_not()
    masked[:, 0] = False

    def run(seed: int, values: Sequence[input_sampling.Array], watch: fill_values.Numbers | None) -> Result:
        x = torch.from_numpy(values[0])
        with watch or nullcontext():
            weights = FILLED[name](x @ x.T * -12.0, masked).softmax(-1)
            return Result({"out/0": weights.numpy(), "out/1": (x + 1e5).numpy(), "out/2": (x * 1e3).numpy()})

    leaf = input_sampling.Leaf(np.random.default_rng(0).standard_normal((6, 4)), "float32")
    assert fill_values.hidden(run, [leaf.value]) == [(name, -1e4)]
    found = fill_values.reaching(run, [leaf], {0: [leaf.value]}, (name, -1e4))
    assert found is not None and fill_values.reaching(run, [leaf], {0: [leaf.value]}, (name, -3e4)) is None
    for (values,), factor in zip(found[1], fill_values.FACTORS, strict=True):
        assert tipped(run(0, [values], None), [run(0, [values], fill_values.Numbers((name, -1e4), factor))])


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


def test_what_is_left_out_is_told_by_reason() -> None:
    names = {"shape-empty": "", "edge-nan": "it is up to it", "edge-inf": "it is up to it", "new inputs for seed 1": ""}
    assert left_out({"name": name, "reason": reason} for name, reason in names.items()) == [
        "not compared, since the original does not take it: shape-empty, new inputs for seed 1",
        "not compared, since it is up to it: edge-nan, edge-inf",
    ]
    errors = (ValueError("none (at all)"), Undetermined("it is\nup to it"), None)
    assert [undetermined_reason(error) for error in errors] == ["", "it is up to it", ""]


def test_comparisons_that_noise_tips_over_are_seen() -> None:
    def result(*values: float) -> Result:
        return Result({"out/0": np.array(values)})

    assert not tipped(result(1.0, np.nan, np.inf), [result(1.0 + 1e-9, np.nan, np.inf)])
    assert tipped(result(1.0, 2.0), [result(1.0, 2.0), result(1.0, 0.0)]) and tipped(result(1.0, np.inf), [result(1.0, 3.0)])
    assert tipped(Result({"out/0": np.array([1])}), [Result({"out/0": np.array([2])})])


def test_rows_are_made_equal() -> None:
    batch, other = np.arange(6.0).reshape(3, 2), np.arange(2.0)
    found = input_sampling.equal_rows([input_sampling.Leaf(batch, "float32"), input_sampling.Leaf(other, "float32")], [batch, other])
    assert found is not None and (found[0] == batch[0]).all() and (found[1] == other).all()
    assert input_sampling.equal_rows([input_sampling.Leaf(batch[:1], "float32")], [batch[:1]]) is None


NOTHING = (0.0, 0.0)
COMPARISONS: list[tuple[str, Any, Any, tuple[float, float], bool]] = [
    ("equal", [1.0, 2.0], [1.0, 2.0], NOTHING, False),
    ("rounding", [1.0, 2.0], [1.0 + 1e-15, 2.0], NOTHING, False),
    ("an epsilon", [1.0, 2.0], [1.0 + 1e-7, 2.0], NOTHING, True),
    ("ill-conditioned", [1.0, 2.0], [1.0 + 1e-7, 2.0], (1e-8, 1e-8), False),
    ("wrong however ill-conditioned", [1.0, 2.0], [1.1, 2.0], (1.0, 1.0), True),
    ("one small element among large ones", [1e6, 1.0], [1e6, 1.5], NOTHING, True),
    ("shape", [1.0, 2.0], [[1.0, 2.0]], NOTHING, True),
    ("NaN on both sides", [np.nan, 2.0], [np.nan, 2.0], NOTHING, False),
    ("NaN on one side", [1.0, 2.0], [np.nan, 2.0], NOTHING, True),
    ("sign of infinity", [np.inf, 2.0], [-np.inf, 2.0], NOTHING, True),
    ("integers", [1, 2], [1, 3], NOTHING, True),
    ("zeros", [0.0, 0.0], [0.0, 0.0], NOTHING, False),
    ("not zero", [0.0, 0.0], [0.0, 1e-3], NOTHING, True),
    ("zero with noise that is not known", [0.0, 0.0], [0.0, 1.0], UNKNOWN, True),
    ("noise that is not known", [1.0, 2.0], [1.0 + 1e-7, 2.0], UNKNOWN, False),
    ("wrong whatever the noise", [1.0, 2.0], [1.1, 2.0], UNKNOWN, True),
    ("empty", [], [], NOTHING, False),
]


@pytest.mark.parametrize(("expected", "got", "noise", "failed"), [row[1:] for row in COMPARISONS], ids=[row[0] for row in COMPARISONS])
def test_comparison(expected: Any, got: Any, noise: tuple[float, float], failed: bool) -> None:
    assert compare("x", np.array(expected), np.array(got), lambda: noise, tolerances.FLOOR_FP64).failed == failed


def record(path: str, given_value: float, result: float) -> Record:
    """A call of a submodule."""
    return Record(path, "Layer", (np.array([given_value]),), (np.array([result]),))


def test_culprit_got_equal_inputs() -> None:
    theirs = [record("a.fc", 1, 2), record("a.out", 3, 4), record("a", 1, 4), record("b", 4, 5), record("", 1, 5)]
    ours = [record("a.fc", 1, 2), record("a.out", 3.5, 4.5), record("a", 1, 4.5), record("b", 4.5, 5.5), record("", 1, 5.5)]
    found = find(theirs, ours, tolerances.FLOOR_FP64)
    assert found is not None and found.path == "a"  # a.out only passes on what a's own code made of a.fc's result
    ours[0] = record("a.fc", 1, 2.5)
    found = find(theirs, ours, tolerances.FLOOR_FP64)
    assert found is not None and found.path == "a.fc"
    assert find(theirs, theirs, tolerances.FLOOR_FP64) is None


class Base:
    """Stands for `nn.Module`."""

    def __init__(self, *args: Any) -> None:
        pass


class Theirs(Base):
    """An original."""

    def __init__(self, d: int, act: type = int, eps: float = 1e-5, *rest: int, flag: bool = False) -> None:
        pass


class Ours(Base):
    """Its mirror."""

    def __init__(self, d: int, act: type = float, eps: float = 1e-5, *rest: int, flag: bool = False, rngs: Any) -> None:
        pass


class Other(Base):
    """A mirror with another default."""

    def __init__(self, d: int, act: type = float, eps: float = 1e-6, *rest: int, flag: bool = False, rngs: Any) -> None:
        pass


def test_signatures() -> None:
    theirs = describe(Theirs, "__init__", Base)
    assert constructor_problem(theirs, describe(Ours, "__init__", Base)) == ""
    assert "eps has the default 1e-06" in constructor_problem(theirs, describe(Other, "__init__", Base))
    assert "no keyword-only parameter rngs" in constructor_problem(theirs, theirs)
    assert parameters_problem("f", theirs, theirs) == ""
    assert describe(Base, "__init__", Base) == []
    assert describe(torch.nn.Linear, "__init__", torch.nn.Module) is None


@pytest.mark.parametrize("imaginary", [0, 1j], ids=["real", "complex"])
@pytest.mark.parametrize("kind", ["sgd", "adamw"])
def test_optimisers_are_torchs(kind: str, imaginary: complex) -> None:
    draws = np.random.default_rng(0).standard_normal((2, 3, 4))
    start = draws[0] + imaginary * draws[1] if imaginary else draws[0]
    theirs = torch.nn.Parameter(torch.from_numpy(start.copy()))
    settings: dict[str, Any] = {"lr": 0.05}
    if kind == "sgd":
        step: Any = torch.optim.SGD([theirs], momentum=tolerances.MOMENTUM, **settings)
    else:
        step = torch.optim.AdamW(
            [theirs], betas=tolerances.BETAS, eps=tolerances.ADAM_EPSILON, weight_decay=tolerances.WEIGHT_DECAY, **settings
        )
    ours, rule = start, NumpyOptimiser(kind, 0.05, 1)
    for _ in range(4):
        theirs.grad = 2 * theirs.detach()
        step.step()
        (ours,) = rule.step([ours], [2 * ours])
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-13)


def test_a_device_becomes_one_of_the_other_side() -> None:
    tree = codec.encode({"device": torch.device("cpu")}, [], lambda value: False)
    back = codec.decode(tree, [], {})
    assert back == {"device": jax.devices()[0]}
    assert codec.encode(back, [], lambda value: False) == tree


def test_functions_that_a_module_keeps_hold_its_copy() -> None:
    module: Any = torch.nn.Linear(2, 2)

    def twice(x: torch.Tensor) -> Any:
        return 2 * module(x)

    module.twice, module.table = twice, {"twice": twice}
    made: Any = copied(module)
    torch.nn.init.zeros_(made.weight)
    torch.nn.init.zeros_(made.bias)
    assert not made.twice(torch.ones(2)).any() and not made.table["twice"](torch.ones(2)).any()


def test_a_module_whose_weight_a_hook_computes_is_copied() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        module = torch.nn.utils.weight_norm(torch.nn.Linear(3, 2))
    module(torch.ones(1, 3))
    with pytest.raises(RuntimeError, match="deepcopy"):
        copy.deepcopy(module)
    twin: Any = copied(module)
    with torch.no_grad():
        twin.weight_g.mul_(2)
    torch.testing.assert_close(twin(torch.ones(1, 3)) - twin.bias, 2 * (module(torch.ones(1, 3)) - module.bias))


@pytest.mark.parametrize(("width", "same"), [(1.0, True), (1.1, False)])
def test_initial_values_of_another_width_are_told(width: float, same: bool) -> None:
    draw = np.random.default_rng(0).standard_normal
    problem, p = distribution_problem(Sample(draw((64, 128))), Sample(width * draw((64, 128))), tolerances.INIT_ALPHA)
    assert (not problem) == same == (p > tolerances.INIT_ALPHA)


def test_what_is_computed_in_place_gets_noise_too() -> None:
    with RoundingNoise(1):
        found = [torch.full((3,), 0.3, dtype=torch.float64).sigmoid_(), torch.sigmoid(torch.full((3,), 0.3, dtype=torch.float64))]
        kept = torch.zeros(3, dtype=torch.float64).copy_(torch.full((3,), 0.3, dtype=torch.float32))
    exact = torch.sigmoid(torch.full((3,), 0.3, dtype=torch.float64))
    for value in found:
        assert 0 < (value - exact).abs().max() < 1e-15
    assert torch.equal(kept, torch.full((3,), 0.3, dtype=torch.float32).double())


def test_probabilities_are_never_infinite() -> None:
    signal, share = input_sampling.Leaf(np.linspace(-1, 2, 6), "float32"), input_sampling.Leaf(np.linspace(0, 1, 6), "float32")
    found = input_sampling.edges([signal, share], 1e3)
    assert [np.isinf(value).any() for value in found["minus-inf"]] == [True, False]
    assert [np.isnan(value).any() for value in found["nan"]] == [True, True]
    assert np.isinf(input_sampling.edges([share], 1e3)["inf"][0]).any()


@pytest.mark.parametrize(("factor", "expected"), [(1.0, False), (0.0, True), (np.nan, False)])
def test_operators_that_make_nan_are_noticed(factor: float, expected: bool) -> None:
    infinite, mode = torch.tensor([1.0, np.inf]), Undefined()
    with mode:
        assert (infinite * factor).numel() == 2
    assert mode.seen == expected


@pytest.mark.parametrize(
    ("theirs", "ours", "failed"),
    [(np.nan, np.inf, False), (np.nan, 1.0, True), (np.inf, np.nan, False), (1.0, np.inf, True), (1.0, 2.0, False)],
)
def test_where_infinities_make_nan_only_what_is_finite_counts(theirs: float, ours: float, failed: bool) -> None:
    pair = _of_infinities(Pair("out", "out/0", np.array(theirs, np.float32), np.array(ours, np.float32)))
    assert compare_native(pair, pair, quiet, "float32").failed == failed


@pytest.mark.parametrize(("ours", "failed"), [(1.0 + 1e-4, False), (1.1, True)])
def test_native_errors_are_judged_where_the_noise_is_not_known(ours: float, failed: bool) -> None:
    exact, native = (Pair("out", "out/0", np.array([1.0]), np.array([ours])) for _ in range(2))
    assert compare_native(exact, native, lambda: UNKNOWN, "float32").failed == failed


@pytest.mark.parametrize(
    ("values", "k", "tied"),
    [
        ([3.0, 1.0, 2.0], 2, False),
        ([3.0, 2.0, 2.0], 2, True),
        ([3.0, 1.0, 1.0], 1, False),
        ([np.nan, np.nan, 1.0], 1, True),
        ([2.0, 2.0, 1.0], 2, True),
    ],
)
def test_ties_among_the_largest_are_noticed(values: list[float], k: int, tied: bool) -> None:
    stream = Stream(0)
    with PairedDraws(stream):
        torch.tensor(values).topk(k)
    assert stream.tied == tied
