"""Trees of arguments and outputs: encoding, decoding, structure."""

from __future__ import annotations

import argparse
import types
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from migrate_agent.tools.harness.common import trees as codec
from migrate_agent.tools.vendored import distributions, distributions_discrete, distributions_joint

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
    st.sets(st.integers() | st.text(), max_size=1),
    st.frozensets(st.integers(), max_size=1),
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


@pytest.mark.parametrize("value", [object(), {1.5: 2}, {1, Point(1, 2)}, print])
def test_what_cannot_travel_is_refused(value: Any) -> None:
    with pytest.raises(codec.Unencodable):
        codec.encode(value, [], is_array)


@pytest.mark.parametrize(("theirs", "ours"), [((1, 2), [1, 2]), ({"a": 1}, {"b": 1}), (None, 0), ((1,), (1, 2)), ("a", "b")])
def test_trees_of_other_form_differ(theirs: Any, ours: Any) -> None:
    skeletons = [codec.skeleton(codec.encode(value, [], is_array)) for value in (theirs, ours)]
    assert skeletons[0] != skeletons[1]


def test_a_device_becomes_one_of_the_other_side() -> None:
    tree = codec.encode({"device": torch.device("cpu")}, [], lambda value: False)
    back = codec.decode(tree, [], {})
    assert back == {"device": jax.devices()[0]}
    assert codec.encode(back, [], lambda value: False) == tree
    assert codec.skeleton(tree) == codec.skeleton(codec.encode({"device": None}, [], lambda value: False))


def test_a_function_of_torch_becomes_one_of_the_other_side() -> None:
    handed = [torch.tanh, torch.nn.functional.relu, torch.relu]
    tree = codec.encode(handed, [], is_array)
    back = codec.decode(tree, [], {})
    assert back == [jnp.tanh, jax.nn.relu, jax.nn.relu]
    assert codec.encode(back, [], is_array) == tree
    assert not codec.rearranged(tree, back, is_array) and codec.rearranged(tree, back[:2], is_array)
    with pytest.raises(codec.Unencodable):
        codec.encode(torch.matmul, [], is_array)


class Holder:
    """A plain object, such as a cache."""

    def __init__(self, parts: list[Any], **others: Any) -> None:
        self.parts = parts
        vars(self).update(others)


class Torch(torch.nn.Module):
    """No plain object."""


class Listed(list[Any]):
    """A list of a class of the user's."""


class Cache(dict[str, Any]):
    """A dictionary with properties, and an attribute."""

    def __init__(self, **parts: Any) -> None:
        super().__init__(parts)
        self.step = 0

    @property
    def keys_of_attention(self) -> Any:
        """An item by another name."""
        return self["keys"]


def test_a_plain_object_goes_by_its_attributes() -> None:
    holder = Holder([np.arange(2), 3], name="a")
    found: list[Any] = []
    tree = codec.encode((holder, 1), found, is_array)
    other, number = codec.decode(tree, found, {})
    assert type(other) is Holder and number == 1
    assert (other.parts[1], vars(other)["name"]) == (3, "a") and other.parts is not holder.parts


@pytest.mark.parametrize("own", [Cache(keys=np.arange(2), count=3), Listed([np.arange(2), 3])])
def test_collections_of_the_users_keep_their_class(own: Any) -> None:
    own.step = 5
    found: list[Any] = []
    tree = codec.encode((own, 1), found, is_array)
    other, number = codec.decode(tree, found, {})
    assert type(other) is type(own) and number == 1 and vars(other) == {"step": 5} and other is not own
    assert repr(other) == repr(own) and len(codec.items(tree)) == 4
    assert [*codec.with_objects(5, ((2, [own]), {}))] == [5, own]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Cache(a=1), Cache(b=1)),
        (Cache(a=1), {"a": 1}),
        (Listed([1]), Listed([1, 2])),
        (Holder([1, 2]), Holder([1])),
        (Holder([]), Holder([], more=1)),
        (Holder([], name="a"), Holder([], name="b")),
        (Holder([], of=np.random.default_rng(0)), Holder([], of=0)),
        (Holder([iter([1, 2])]), Holder([iter([1])])),
    ],
)
def test_plain_objects_are_told_apart(one: Any, other: Any) -> None:
    same, different = (codec.skeleton(codec.encode(value, [], is_array)) for value in (one, other))
    assert same != different
    assert same == codec.skeleton(codec.encode(one, [], is_array))


@pytest.mark.parametrize("value", [Torch(), Holder, Holder([Torch()]), Holder([], of=len), object(), np.random.default_rng(0)])
def test_what_is_no_plain_object_is_refused(value: Any) -> None:
    with pytest.raises(codec.Unencodable):
        codec.encode(value, [], is_array)


def test_an_object_that_holds_itself_is_refused() -> None:
    holder = Holder([])
    holder.parts.append(holder)
    with pytest.raises(codec.Unencodable, match="holds itself"):
        codec.encode(holder, [], is_array)


def test_a_generator_of_random_numbers_is_no_argument() -> None:
    tree = codec.encode(Holder([], of=np.random.default_rng(0)), [], is_array)
    with pytest.raises(codec.Unencodable, match="in an argument"):
        codec.decode(tree, [], {})


def test_an_iterator_keeps_what_is_left() -> None:
    iterator = iter([1, 2, 3])
    next(iterator)
    tree = codec.encode(iterator, [], is_array)
    assert [*codec.decode(tree, [], {})] == [2, 3] == [*iterator]


def test_a_call_gives_what_it_leaves_in_objects_too() -> None:
    holder = Holder([1])
    assert codec.with_objects(5, ((2, [holder]), {"x": 3})) == (5, holder)
    assert codec.with_objects(5, ((2,), {})) == 5


@pytest.mark.parametrize("made", [types.SimpleNamespace, argparse.Namespace])
def test_options_go_by_their_attributes(made: Callable[..., Any]) -> None:
    options, found = made(size=3, scale=np.arange(2)), list[Any]()
    decoded = codec.decode(codec.encode(options, found, is_array), found, {})
    assert type(decoded) is made and decoded.size == 3 and (decoded.scale == np.arange(2)).all()
    assert codec.with_objects(5, ((options,), {})) == (5, options)


class Counted:
    """A plain object whose constructor needs no arguments."""

    made = 0

    def __init__(self, start: int = 0) -> None:
        type(self).made += 1
        self.count = start


@pytest.mark.parametrize(("value", "runs"), [(Counted(), True), (Counted(3), False), (Holder([]), False)])
def test_an_object_that_is_as_its_class_makes_it_is_made_anew(value: Any, runs: bool) -> None:
    tree = codec.encode(value, [], is_array, arguments=True)
    before = Counted.made
    other = codec.decode(tree, [], {})
    assert vars(other) == vars(value) and other is not value
    assert (Counted.made > before) == runs


DISTRIBUTIONS = {
    "Normal": "loc=[0.0, 1.0], scale=[1.0, 2.0]",
    "LogNormal": "loc=[0.0, 1.0], scale=[1.0, 2.0]",
    "Laplace": "loc=[0.0, 1.0], scale=[1.0, 2.0]",
    "Gumbel": "loc=[0.0, 1.0], scale=[1.0, 2.0]",
    "Bernoulli": "probs=[0.2, 0.7]",
    "Categorical": "logits=[0.2, 0.7]",
    "OneHotCategorical": "probs=[0.2, 0.8]",
    "OneHotCategoricalStraightThrough": "logits=[0.2, 0.8]",
    "Uniform": "low=[0.0, 1.0], high=[1.0, 2.0]",
    "Exponential": "rate=[0.5, 1.0]",
    "Poisson": "rate=[0.5, 1.0]",
    "Gamma": "concentration=[0.5, 1.0], rate=[1.0, 2.0]",
    "Dirichlet": "concentration=[0.5, 1.0]",
    "Beta": "concentration1=[0.5, 1.0], concentration0=[1.0, 2.0]",
    "MultivariateNormal": "loc=[0.0, 1.0], scale_tril=[[1.0, 0.0], [0.5, 2.0]]",
    "LowRankMultivariateNormal": "loc=[0.0, 1.0], cov_factor=[[1.0], [0.5]], cov_diag=[1.0, 2.0]",
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions_are_compared_by_what_makes_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ours: Any = next(vars(module)[name] for module in (distributions, distributions_discrete, distributions_joint) if name in vars(module))
    monkeypatch.setattr(ours, "__module__", "net_jax.nnx_layers")
    numbers = eval(f"dict({DISTRIBUTIONS[name]})")
    made = ours(**{key: jax.numpy.array(value) for key, value in numbers.items()})
    theirs = getattr(torch.distributions, name)(**{key: torch.tensor(value) for key, value in numbers.items()})
    sides = []
    for one, array in ((theirs, torch.Tensor), (made, jax.Array)):
        found: list[Any] = []
        sides.append((codec.skeleton(codec.encode(one, found, lambda item, array=array: isinstance(item, array))), found))  # type: ignore[misc]
    assert sides[0][0] == sides[1][0] and len(sides[0][1]) == len(sides[1][1]) > 0
    for a, b in zip(sides[0][1], sides[1][1], strict=True):
        np.testing.assert_allclose(a.numpy(), np.asarray(b), rtol=1e-5)
    with pytest.raises(codec.Unencodable):
        codec.encode(theirs, [], lambda item: isinstance(item, torch.Tensor), arguments=True)


@pytest.mark.parametrize("make", [lambda: map(abs, [1, 2]), lambda: zip([1], [2], strict=True), lambda: (i for i in (1, 2))])
def test_what_is_gone_through_once_is_written_down_by_its_items(make: Any) -> None:
    tree = codec.encode((make(), 3), [], is_array)
    assert list(codec.decode(tree, [], {})[0]) == list(make())
    with pytest.raises(codec.Unencodable):
        codec.encode(make(), [], is_array, arguments=True)


def test_objects_of_installed_packages_are_results_alone() -> None:
    """What they keep is written down; those of frameworks, of C code and of what cannot be compared are refused."""
    networkx = pytest.importorskip("networkx", reason="an installed package in plain Python")
    graph, same, other = (networkx.DiGraph() for _ in range(3))
    for one, weight in ((graph, 0.5), (same, 0.5), (other, 0.25)):
        one.add_node("a", kind="in")
        one.add_edge("a", "b", weight=weight)
    trees_of = [codec.encode(one, [], is_array) for one in (graph, same, other)]
    assert trees_of[0] == trees_of[1] != trees_of[2]
    assert codec.items(trees_of[0]) != codec.items(trees_of[2])
    with pytest.raises(codec.Unencodable):
        codec.encode(graph, [], is_array, arguments=True)


@pytest.mark.parametrize("cls", [torch.nn.Linear, torch.optim.SGD, np.random.Generator, jax.Array, dict, Config, type(iter([]))])
def test_classes_that_are_of_no_package_in_plain_python(cls: type) -> None:
    assert not codec.is_of_package(cls)
