"""Other configurations of a unit: what is proposed, how it is put in, and how far an original takes it."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate_agent.tools.verify.configurations import CALL, bind, called, changed, others, proposals, words
from migrate_agent.tools.verify.expected import Scenario
from migrate_agent.tools.verify.notes import elsewhere
from migrate_agent.tools.verify.pairing import UNPAIRED
from migrate_agent.tools.verify.results import Answer


@dataclass
class Settings:
    """Settings as a user's class; `half` follows from `width`."""

    width: int = 8
    rate: float = 0.5
    half: int = field(init=False)

    def __post_init__(self) -> None:
        self.half = self.width // 2


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
        (4, (5, 8, 2)),
        (1, (2, 2)),
        (0, (1,)),
        (-1, (-2,)),
        (0.5, (0.25,)),
        (0.0, (0.25,)),
        (float("inf"), ()),
        ("relu", ()),
        (None, ()),
        ((2, 4), ([3, 5], [4, 8], [1, 2])),
        ([0.5, 1.0], ([0.25, 0.5],)),
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
    assert set(found) == {"width", "bias", "sizes", "settings.width", "settings.rate", "more.gain"}
    assert set(proposals(bind(Unit.__init__, (4,), {"settings": Loose()}))) == {"width", "bias", "sizes", "settings.depth"}


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
def test_what_could_not_be_compared_is_told(facts: Any, words_of_it: str) -> None:
    scenario = Scenario({"name": "e1-configuration-train", "draws": []}, {})

    class Told:
        """The part of the results that is asked."""

        def answers(self, role: str) -> list[tuple[Scenario, Answer]]:
            """One."""
            return [(scenario, Answer(facts, {}))] if role == "configuration" else []

        def configured(self, of: Scenario) -> str:
            """Its arguments."""
            return words({"heads": 4, f"{CALL}causal": False})

    found = elsewhere(Told())  # type: ignore[arg-type]
    assert found == (
        [f"not compared as constructed with heads=4; called with causal=False, which the original takes: {words_of_it}"]
        if words_of_it
        else []
    )
