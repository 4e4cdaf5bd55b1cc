"""Trees of arguments and outputs: encoding, decoding, structure."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from migrate_agent.tools.harness.common import trees as codec

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


def test_a_device_becomes_one_of_the_other_side() -> None:
    tree = codec.encode({"device": torch.device("cpu")}, [], lambda value: False)
    back = codec.decode(tree, [], {})
    assert back == {"device": jax.devices()[0]}
    assert codec.encode(back, [], lambda value: False) == tree
    assert codec.skeleton(tree) == codec.skeleton(codec.encode({"device": None}, [], lambda value: False))
