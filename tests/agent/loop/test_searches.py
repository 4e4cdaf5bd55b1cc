"""Searches that are begun before their turn give what they would have given in it."""

from __future__ import annotations

from migrate_agent.agent.loop.exercising.searches import searches
from migrate_agent.tools.record.at_once import in_order
from migrate_agent.tools.record.infer import Guess
from migrate_agent.tools.types import Unit

UNITS = [Unit(f"{name}.py", name.upper(), f"{name}_jax.py", "rewrite") for name in "abcdefgh"]


def test_each_unit_gets_its_own_guess_and_is_searched_once() -> None:
    searched: list[str] = []

    def search(unit: Unit) -> Guess:
        searched.append(unit.id)
        return Guess(error=unit.id)

    with searches(search) as begun:
        errors = [begun.guess(UNITS[at:]).error for at in range(len(UNITS))]
    assert errors == [unit.id for unit in UNITS]
    assert sorted(searched) == sorted(errors)


def test_one_that_is_not_asked_for_holds_nothing_up() -> None:
    with searches(lambda unit: Guess(error=unit.id)) as begun:
        assert begun.guess(UNITS[:2]).error == UNITS[0].id
        assert begun.guess(UNITS[5:]).error == UNITS[5].id


def test_results_come_in_the_order_of_the_items() -> None:
    assert list(in_order(str, range(40))) == [str(number) for number in range(40)]
