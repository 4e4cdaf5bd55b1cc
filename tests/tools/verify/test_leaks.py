"""How a leak of tracers is told apart from an error of the candidate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import pytest

from migrate_agent.tools.verify.candidate.native import leak_of


class Holder:
    """What calls may put values into."""

    kept: Any = None


def put_into_attribute(x: Any) -> Any:
    Holder.kept = x
    return x


def put_where_nothing_refers_to_it(x: Any) -> Any:
    Holder.kept["x"] = x
    del Holder.kept
    return x


def index_beyond_the_end(x: Any) -> Any:
    return [x][1]


def ask_for_an_axis_too_many(x: Any) -> Any:
    return x.shape[2]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (put_into_attribute, "Leaked trace"),
        (put_where_nothing_refers_to_it, "a tracer leaked: an attribute or a global name"),
        (index_beyond_the_end, None),
        (ask_for_an_axis_too_many, None),
    ],
)
def test_leaks_are_told(function: Callable[[Any], Any], words: str | None) -> None:
    held = Holder.kept = {}
    with jax.checking_leaks(), pytest.raises((Exception,)) as raised:
        jax.make_jaxpr(function)(1.0)
    leak = leak_of(raised.value)
    assert str(leak) == "None" if words is None else words in str(leak)
    assert held.keys() <= {"x"}
    Holder.kept = None
