"""The assessment of a repository: what there is, what rules and people will do, how long it takes, what may go wrong, and in which order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from migrate_agent.tools.assess.calibration import Range, unit_seconds, verified_share
from migrate_agent.tools.assess.risks import Risk, risks
from migrate_agent.tools.assess.ways import Existing, existing
from migrate_agent.tools.types import Finding, Inventory, Strategy, Unit

HOURS = Range(1.0, 3.0, 8.0)
"""Of a person, for one unit or place that is left open. An assumption: nobody's time is among the stored results."""
_OPEN: tuple[Strategy, ...] = ("redesign", "substitute")
_ORDER: tuple[Strategy, ...] = ("rewrite", "substitute", "redesign", "keep")


@dataclass(frozen=True)
class Assessment:
    """`units` in the order of work. `rules` is the number of units that the rules alone should get verified, `open_units` what is left of them.

    `machine_hours` are those of two processor cores, `person_hours` those of people or a model for what is left and for `sites`, the findings that need
    a redesign or a substitute outside of units. `existing` are units whose architecture exists in JAX.
    """

    units: tuple[Unit, ...]
    strategies: Mapping[str, int]
    sites: tuple[Finding, ...]
    risks: tuple[Risk, ...]
    existing: tuple[Existing, ...]
    rules: Range
    open_units: Range
    machine_hours: Range
    person_hours: Range
    hours_each: Range


def assess(inventory: Inventory, hours: Range = HOURS) -> Assessment:
    """`hours` is what a person needs for one open unit or place."""
    strategies = Counter(unit.strategy for unit in inventory.units)
    rewritten, fixed = strategies["rewrite"], sum(strategies[strategy] for strategy in _OPEN)
    rules = verified_share().times(rewritten)
    open_units = Range(rewritten - rules.high + fixed, rewritten - rules.likely + fixed, rewritten - rules.low + fixed)
    sites = _sites(inventory)
    work = Range(*(count + len(sites) for count in open_units))
    return Assessment(
        units=inventory.units,
        strategies={name: strategies[name] for name in _ORDER},
        sites=sites,
        risks=risks(inventory),
        existing=existing(inventory),
        rules=rules,
        open_units=open_units,
        machine_hours=unit_seconds().times(rewritten / 3600),
        person_hours=Range(*(count * effort for count, effort in zip(work, hours, strict=True))),
        hours_each=hours,
    )


def _sites(inventory: Inventory) -> tuple[Finding, ...]:
    """One for each kind in each function, outside of units: fifty calls of one optimizer's loop are one place to rework."""
    units = {(unit.source, unit.name) for unit in inventory.units}
    rows = [row for row in inventory.findings if row.strategy in _OPEN and row.kind != "function" and (row.source, row.name) not in units]
    return tuple({(row.source, row.name, row.kind): row for row in reversed(rows)}.values())[::-1]
