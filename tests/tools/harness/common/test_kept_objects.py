"""Plain objects that a call changes are as before, once it has ended."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from migrate_agent.tools.harness.common.kept_objects import kept, snapshot


def _raise(settings: Any) -> None:
    settings.size = 0
    raise ValueError


CHANGES: dict[str, Callable[[Any], Any]] = {
    "an attribute": lambda settings: setattr(settings, "size", 2),
    "another attribute": lambda settings: setattr(settings, "new", 2),
    "an attribute that goes": lambda settings: delattr(settings, "size"),
    "a list": lambda settings: settings.widths.append(3),
    "a dictionary inside of a tuple": lambda settings: settings.tables[0].update(a=2),
    "an error": _raise,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_a_call_changed_is_as_before(change: Callable[[Any], Any]) -> None:
    settings = SimpleNamespace(size=4, widths=[1, 2], tables=({"a": 1},))
    settings.itself = settings
    part = SimpleNamespace(size=1)
    owner = SimpleNamespace(settings=settings, part=part)
    try:
        with kept([owner], lambda value: value is part):
            part.size = 5
            change(settings)
    except ValueError:
        pass
    assert owner.settings is settings and part.size == 5
    assert (settings.size, settings.widths, settings.tables, settings.itself) == (4, [1, 2], ({"a": 1},), settings)
    assert not hasattr(settings, "new")


def test_a_part_that_a_call_leaves_in_a_plain_object_stays() -> None:
    settings, part = SimpleNamespace(size=4), SimpleNamespace()
    with kept([SimpleNamespace(settings=settings)], lambda value: value is part):
        settings.size, settings.last = 2, part
    assert settings.last is part


def test_whether_a_call_changed_them_is_told() -> None:
    settings = SimpleNamespace(size=4, widths=[1, 2])
    objects = snapshot([settings], lambda value: False)
    settings.size = 4
    assert not any(put_back() for put_back in objects)
    settings.widths.append(3)
    assert any(put_back() for put_back in objects)
