"""One tuple names every rule that is there, and no rule twice."""

from __future__ import annotations

from collections.abc import Iterator

from migrate_agent.tools.discovery import modules_below
from migrate_agent.tools.rewrite.rules.order import ORDER
from migrate_agent.tools.rewrite.rules.rule import Rule


def defined_rules() -> Iterator[type[Rule]]:
    """The public rule classes that the modules under `rules/` define."""
    for module in modules_below("migrate_agent.tools.rewrite.rules"):
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Rule) and value.__module__ == module.__name__:
                if value is not Rule and not value.__name__.startswith("_"):
                    yield value


def test_every_rule_has_its_place_in_the_order() -> None:
    missing = set(defined_rules()) - set(ORDER)
    assert not missing, f"name them in rules/order.py: {sorted(rule.__name__ for rule in missing)}"


def test_the_order_names_only_rules_that_are_found() -> None:
    unknown = set(ORDER) - set(defined_rules())
    assert not unknown, f"not defined by a module under rules/: {sorted(rule.__name__ for rule in unknown)}"


def test_no_rule_stands_twice_and_no_two_share_a_name() -> None:
    names = [rule.__name__ for rule in ORDER]
    assert len(set(names)) == len(names)
