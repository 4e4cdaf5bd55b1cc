"""Other configurations of a unit: what is proposed, how it is put in, and how far an original takes it."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate_agent.tools.harness.common.argument_changes import (
    ABSENT,
    CALL,
    bind,
    called,
    changed,
    lengths,
    others,
    proposals,
    strings,
    words,
)
from migrate_agent.tools.verify.compare.pairs import UNPAIRED
from migrate_agent.tools.verify.contract.scenario import Answer, Role, Scenario
from migrate_agent.tools.verify.report.notes import elsewhere


@dataclass
class Settings:
    """Settings as a user's class; `half` follows from `width`."""

    width: int = 8
    rate: float = 0.5
    half: int = field(init=False)

    def __post_init__(self) -> None:
        self.half = self.width // 2


class Pair(NamedTuple):
    """A tuple that is more than one."""

    left: int
    right: int


class Loose:
    """Settings as plain attributes."""

    def __init__(self) -> None:
        self.depth, self.name, self._hidden = 2, "x", 3


class Unit:
    """Remembers its arguments."""

    def __init__(
        self, width: int, *rest: int, bias: bool = True, sizes: tuple[int, ...] = (2, 3), settings: Any = None, **more: Any
    ) -> None:
        self.seen = {"width": width, "rest": rest, "bias": bias, "sizes": sizes, "settings": settings, **more}


def made(changes: dict[str, Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
    """The arguments of a unit that is constructed with these changes."""
    return dict(changed(Unit, changes)(*args, **kwargs).seen)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, (False,)),
        (4, (5, 8, 2, 6)),
        (1, (2, 3)),
        (0, (1, 2)),
        (-1, (-2,)),
        (0.5, (0.25, 0.125, 0.375)),
        (0.0, (0.05, 0.025, 0.75 * 0.1)),
        (float("inf"), (100.0,)),
        ("relu", ()),
        (None, ()),
        ((2, 4), ([3, 5], [4, 8], [1, 2])),
        ([0.5, 1.0], ([0.25, 0.5], [0.125, 0.25], [0.375, 0.75])),
        ((), ()),
        ((1, "x"), ()),
    ],
)
def test_other_values(value: Any, expected: tuple[Any, ...]) -> None:
    assert others(value) == expected


@given(st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False)))
def test_other_values_are_others_of_the_same_type(value: Any) -> None:
    for other in others(value):
        assert type(other) is type(value)
        assert other != value or 0 < abs(value) < 1e-300  # half of the smallest number is nothing


def test_proposals_name_arguments_defaults_and_settings() -> None:
    found = proposals(bind(Unit.__init__, (4, 7), {"settings": Settings(), "gain": 2.0, "table": {"size": 3, "kind": "x"}}))
    assert set(found) == {"width", "bias", "sizes", "sizes.length", "settings.width", "settings.rate", "more.gain", "more.table.size"}
    assert set(proposals(bind(Unit.__init__, (4,), {"settings": Loose()}))) == {"width", "bias", "sizes", "sizes.length", "settings.depth"}


def test_arguments_that_are_equal_become_different_ones() -> None:
    def method(self: Any, heads: int = 2, groups: int = 2, rate: float = 0.0, other: float = 0.0) -> None:
        """Nothing."""

    found = proposals(bind(method, (), {}))
    assert found["heads"][0] != found["groups"][0]
    assert set(found["heads"]) == set(found["groups"])
    assert found["rate"][0] != found["other"][0]


def test_items_that_are_equal_become_different_ones_first() -> None:
    assert others((3, 3))[0] == [4, 6]
    assert others((3, 5))[0] == [4, 6]
    assert {*map(tuple, others([2, 2]))} >= {(3, 4), (3, 3), (4, 4), (1, 1)}


def test_settings_in_settings_are_proposed() -> None:
    nested = SimpleNamespace(model=SimpleNamespace(width=4, sizes=[2, 3]), pair=Pair(1, 2), machinery=object())
    names = set(proposals(bind(Unit.__init__, (4,), {"settings": nested})))
    assert {name for name in names if name.startswith("settings.")} == {
        "settings.model.width",
        "settings.model.sizes",
        "settings.model.sizes.length",
        "settings.pair.left",
        "settings.pair.right",
    }


def test_what_is_absent_is_proposed_where_asked() -> None:
    def method(self: Any, hidden: Any = None, rate: float | None = None) -> None:
        """Nothing."""

    assert not proposals(bind(method, (), {}))
    found = proposals(bind(method, (), {}), absent=True)
    assert found["hidden"] == ABSENT
    assert set(found["rate"]) == set(ABSENT)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([1], (2,)),
        ((1, 2), (3, 1)),
        (["a", "b", "c"], (4, 2)),
        ([np.ones(2), np.ones(2)], (3, 1)),
        ([], ()),
        ([object()], ()),
        ("ab", ()),
        ({"a": 1}, ()),
        (Pair(1, 2), ()),
    ],
)
def test_other_lengths(value: Any, expected: tuple[int, ...]) -> None:
    assert lengths(value) == expected


def test_strings_among_arguments() -> None:
    found = strings(bind(Unit.__init__, (4,), {"settings": Loose(), "mode": "sum", "empty": "", "table": {"kind": "x", "size": 2}}))
    assert found == {"settings.name": "x", "more.mode": "sum", "more.table.kind": "x"}


@pytest.mark.parametrize(
    ("changes", "kwargs", "name", "expected"),
    [
        ({"width": 5}, {}, "width", 5),
        ({"bias": False}, {}, "bias", False),
        ({"sizes": [3, 4]}, {}, "sizes", (3, 4)),
        ({"sizes": [3, 4]}, {"sizes": [5, 6]}, "sizes", [3, 4]),
        ({"settings.width": 16}, {"settings": Settings()}, "settings", Settings(16)),
        ({"settings.width": 16}, {"settings": {"width": 8, "kind": "x"}}, "settings", {"width": 16, "kind": "x"}),
        ({"more.gain": 1.0}, {"gain": 2.0}, "gain", 1.0),
        ({"sizes.length": 3}, {}, "sizes", (2, 3, 2)),
        ({"sizes.length": 1}, {"sizes": [5, 6]}, "sizes", [6]),
        ({"sizes.length": 0}, {"sizes": [5, 6]}, "sizes", []),
        ({"settings.length": 16}, {"settings": {"length": 8}}, "settings", {"length": 16}),
        ({"settings.left": 3}, {"settings": Pair(1, 2)}, "settings", Pair(3, 2)),
        ({"settings.model.left": 3}, {"settings": {"model": Pair(1, 2)}}, "settings", {"model": Pair(3, 2)}),
        ({"settings.a.b": 3}, {"settings": {"a.b": 1}}, "settings", {"a.b": 3}),
        ({"settings.sizes.length": 1}, {"settings": {"sizes": [5, 6]}}, "settings", {"sizes": [6]}),
        (
            {"settings.model.width": 3},
            {"settings": SimpleNamespace(model=Settings(), rate=0.5)},
            "settings",
            SimpleNamespace(model=Settings(3), rate=0.5),
        ),
        ({}, {}, "rest", (7,)),
        ({"width": 5}, {}, "rest", (7,)),
    ],
)
def test_changes_are_put_in(changes: dict[str, Any], kwargs: dict[str, Any], name: str, expected: Any) -> None:
    seen = made(changes, 4, 7, **kwargs)
    assert seen[name] == expected
    assert type(seen[name]) is type(expected)


def test_given_settings_stay_as_they_are() -> None:
    given_ones, loose = Settings(), Loose()
    assert made({"settings.width": 16}, 4, settings=given_ones)["settings"].half == 8
    assert made({"settings.depth": 3}, 4, settings=loose)["settings"].depth == 3
    assert (given_ones.width, loose.depth) == (8, 2)


class Passing(Unit):
    def __init__(self, *args: Any, rngs: int = 0, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)


def test_a_constructor_that_hands_on_its_arguments() -> None:
    assert changed(Passing, {"width": 5})(4, 7, rngs=1).seen["width"] == 5


def test_no_changes_are_the_class_itself() -> None:
    assert changed(Unit, {}) is Unit
    assert "self" in inspect.signature(Unit.__init__).parameters


def test_words_tell_them() -> None:
    assert words({"heads": 4, "settings.bias": False}) == "constructed with heads=4, settings.bias=False"
    assert words({"heads": 4, f"{CALL}causal": False}) == "constructed with heads=4; called with causal=False"


def called_with(changes: dict[str, Any], *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """What a method gets that is called so."""

    def forward(self: Any, x: str, scale: float = 1.0, *rest: str, causal: bool = True, **more: Any) -> tuple[Any, ...]:
        return x, scale, rest, causal, more

    given, named = called(forward, changes, args, kwargs)
    return forward(None, *given, **named)


@pytest.mark.parametrize(
    ("changes", "args", "kwargs", "expected"),
    [
        ({}, ("x", 2.0), {}, ("x", 2.0, (), True, {})),
        ({"causal": False}, ("x",), {}, ("x", 1.0, (), True, {})),
        ({f"{CALL}causal": False, "width": 3}, ("x",), {}, ("x", 1.0, (), False, {})),
        ({f"{CALL}scale": 0.5}, ("x", 2.0, "y"), {"more": 1}, ("x", 0.5, ("y",), True, {"more": 1})),
        ({f"{CALL}more.depth": 2}, ("x",), {"depth": 1}, ("x", 1.0, (), True, {"depth": 2})),
    ],
)
def test_calls_are_changed(changes: dict[str, Any], args: Any, kwargs: Any, expected: Any) -> None:
    assert called_with(changes, *args, **kwargs) == expected


def test_changes_of_the_call_leave_the_constructor_alone() -> None:
    assert changed(Unit, {f"{CALL}causal": False}) is Unit


@pytest.mark.parametrize(
    ("facts", "words_of_it"),
    [
        ({"draws": []}, ""),
        ({"state": ["bias"]}, ""),
        ({"error": "NotImplementedError: no"}, "the rewrite raises NotImplementedError: no"),
        ({"draws": [["normal", [3], None]]}, UNPAIRED),
        (None, "the rewrite's process told nothing of it"),
        ({"draws": 3}, "the rewrite's process told nothing of it"),
    ],
)
@pytest.mark.parametrize(
    ("role", "how"),
    [("configuration", "as constructed with heads=4; called with causal=False"), ("rank", "on inputs with one more axis in front")],
)
def test_what_could_not_be_compared_is_told(facts: Any, words_of_it: str, role: str, how: str) -> None:
    scenario = Scenario(name="e1-configuration-train", role=Role(role))

    class Told:
        """The part of the results that is asked."""

        def answers(self, *roles: str) -> list[tuple[Scenario, Answer]]:
            """One."""
            return [(scenario, Answer(facts, {}))] if scenario.role in roles else []

        def refuses_guess(self, of: Scenario) -> bool:
            """No method was guessed."""
            return False

        def configured(self, of: Scenario) -> str:
            """Its arguments."""
            return words({"heads": 4, f"{CALL}causal": False})

    found = elsewhere(Told())  # type: ignore[arg-type]
    assert found == ([f"not compared {how}, which the original takes: {words_of_it}"] if words_of_it else [])
