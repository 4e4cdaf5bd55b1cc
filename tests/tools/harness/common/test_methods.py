"""The public surface of a class: what counts as a method, how it is called, and which of them run inside of a call."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import pytest

from migrate_agent.tools.harness.common import methods
from migrate_agent.tools.harness.common.argument_changes import bind


class Base:
    def train(self) -> None:
        """What every module has."""


class Own(Base):
    rate = 0.5

    class Inner:
        """No method."""

    def train(self) -> None:
        """Overrides the library's."""

    def forward(self, x: int) -> int:
        return self.encode(x)

    def encode(self, x: int, shift: int = 1) -> int:
        return x + shift

    def _hidden(self) -> None:
        """Nobody's to call."""

    @property
    def size(self) -> int:
        return 3

    @functools.cached_property
    def table(self) -> int:
        return 4

    @staticmethod
    def clip(x: int, low: int = 0) -> int:
        return max(x, low)

    @classmethod
    def made(cls, x: int) -> str:
        return f"{cls.__name__}{x}"


def test_public_methods_are_what_users_call() -> None:
    assert list(methods.public_methods(Own, Base)) == ["encode", "size", "table", "clip", "made"]


def test_a_name_that_is_overridden_by_a_value_is_no_method() -> None:
    class Later(Own):
        encode: Any = None

    assert "encode" not in methods.public_methods(Later, Base)


def test_each_kind_is_called_and_bound() -> None:
    calls: dict[str, tuple[Any, ...]] = {"encode": (2,), "size": (), "table": (), "clip": (-3,), "made": (1,)}
    results = {name: methods.bound(Own(), name)(*args) for name, args in calls.items()}
    assert results == {"encode": 3, "size": 3, "table": 4, "clip": 0, "made": "Own1"}
    bound = {name: dict(list(bind(methods.unbound(Own, name), args, {}).arguments.items())[1:]) for name, args in calls.items()}
    assert bound == {"encode": {"x": 2, "shift": 1}, "size": {}, "table": {}, "clip": {"x": -3, "low": 0}, "made": {"x": 1}}


class Cache:
    def __init__(self) -> None:
        self.steps: list[int] = []

    def turn(self) -> int:
        return len(self.steps)


class Kept(Own):
    def __init__(self) -> None:
        self.held = 1

    def forward(self, x: int, cache: Cache) -> Any:  # type: ignore[override]
        cache.steps.append(x)
        return x, cache

    __call__ = forward

    @property
    def width(self) -> int:
        return self.held

    @width.setter
    def width(self, value: int) -> None:
        self.held = 2 * value

    def __len__(self) -> int:
        return self.held

    def __getitem__(self, index: int) -> int:
        return index + self.held


class Fixed(Kept):
    width = property(lambda self: 4)


def test_setters_and_what_syntax_calls_are_further_methods() -> None:
    assert list(methods.further_methods(Kept, Base)) == ["width=", "__len__", "__getitem__"]
    assert list(methods.further_methods(Fixed, Base)) == ["__len__", "__getitem__"]
    assert "width=" not in methods.public_methods(Kept, Base)


@pytest.mark.parametrize(
    ("name", "args", "result", "held"),
    [
        ("width=", (3,), None, 6),
        ("__len__", (), 1, 1),
        ("__getitem__", (2,), 3, 1),
        ("cache:turn", (5, Cache()), 1, 1),
        (":1.turn", (5, Cache()), 1, 1),
    ],
)
def test_further_methods_are_called(name: str, args: tuple[Any, ...], result: Any, held: int) -> None:
    instance = Kept()
    assert methods.bound(instance, name)(*args) == result
    assert instance.held == held
    assert not methods.is_property(Kept, name)
    assert len(inspect.signature(methods.unbound(Kept, name)).parameters) == 1 + len(args)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("", True), ("width", True), ("width=", True), ("size=", False), ("other", False), ("cache:turn", True), ("a.b", True)],
)
def test_what_a_class_has(name: str, expected: bool) -> None:
    assert methods.has(Kept, name) == expected


def test_what_a_call_is_handed_under_a_name() -> None:
    cache = Cache()
    assert methods.argument(Kept(), "cache", (1, cache), {}) is methods.argument(Kept(), "cache", (1,), {"cache": cache}) is cache
    with pytest.raises(LookupError):
        methods.argument(Kept(), "cache", (), {})


def test_methods_that_run_inside_of_a_call_are_seen() -> None:
    assert methods.called_in(methods.public_methods(Own, Base), lambda: Own().forward(1)) == {"encode"}


def test_a_static_forward_has_no_instance() -> None:
    class Static:
        @staticmethod
        def forward(x: int, low: int = 0) -> int:
            return max(x, low)

    for cls, names in ((Own, ["x"]), (Static, ["x", "low"])):
        assert list(inspect.signature(methods.unbound(cls, "")).parameters)[1:] == names


class Counter:
    total: int

    def reset(self, start: int) -> None:
        self.total = start

    def forward(self, step: int, times: int = 1) -> int:
        self.total += step * times
        return self.total

    __call__ = forward


class Holder:
    def __init__(self) -> None:
        self.counters = [Counter()]

    def forward(self, step: int) -> int:
        return self.counters[0](step)

    __call__ = forward


@pytest.mark.parametrize(
    ("owner", "name", "args", "expected"),
    [
        (Counter, "reset, forward", ({"start": 3}, 2), 5),
        (Counter, "reset, forward, forward", ({"start": 3}, {"step": 2, "times": 2}, 1), (7, 8)),
        (Holder, "counters.0.reset, forward", ({"start": 3}, 2), 5),
    ],
)
def test_methods_are_called_one_after_the_other(owner: Any, name: str, args: tuple[Any, ...], expected: Any) -> None:
    assert methods.has(owner, name)
    assert methods.bound(owner(), name)(*args) == expected
    assert list(bind(methods.unbound(owner, name), args, {}).arguments.values())[1 : 1 + len(args)] == [*args]


def test_an_earlier_method_that_is_lacking_is_told() -> None:
    assert not methods.has(Counter, "restart, forward")
