"""The ways to TPUs for each unit, and which architectures exist in JAX already. The facts stand in `facts.toml`, with sources and a date."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from migrate_agent.tools.types import Inventory, Unit


@dataclass(frozen=True)
class Way:
    """One way to bring code to TPUs. `fits` names the strategies of units for which it is open."""

    name: str
    fits: tuple[str, ...]
    costs: str
    gives: str
    limits: str
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Family:
    """An architecture that exists in JAX. `names` and `marks` are regular expressions; all of `marks` must stand in a unit's files."""

    name: str
    names: str
    links: tuple[str, ...]
    marks: tuple[str, ...] = ()


@dataclass(frozen=True)
class HardwareRule:
    """Which accelerator a phase of the work belongs on, and who says so."""

    name: str
    hardware: str
    why: str
    source: str


@dataclass(frozen=True)
class Gpu:
    """Published figures of one GPU: bytes, bytes a second, and operations a second in bfloat16 (dense)."""

    name: str
    memory: float
    bandwidth: float
    bf16: float
    source: str


@dataclass(frozen=True)
class Existing:
    """A unit that nothing constructs, of a family that exists in JAX. `by` says what it was recognised by."""

    unit: str
    family: str
    by: str
    links: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Facts:
    """All of `facts.toml`. `as_of` is the day on which its sources were read."""

    as_of: str
    ways: tuple[Way, ...]
    families: tuple[Family, ...]
    phases: tuple[HardwareRule, ...]
    gpus: tuple[Gpu, ...]


@cache
def facts() -> Facts:
    """The facts. Raises `TypeError` where a row has a key too few or too many."""
    rows = tomllib.loads(Path(__file__).with_name("facts.toml").read_text(encoding="utf-8"))
    return Facts(rows["as_of"], *(tuple(kind(**_frozen(row)) for row in rows[key]) for key, kind in _KINDS.items()))


_KINDS: dict[str, Any] = {"way": Way, "family": Family, "phase": HardwareRule, "gpu": Gpu}


def _frozen(row: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


def open_ways(unit: Unit) -> tuple[str, ...]:
    """The names of the ways that are open for a unit, the one that we would take first; `redesign by hand` first where nothing does it for one."""
    names = tuple(way.name for way in facts().ways if unit.strategy in way.fits and way.name != "an existing JAX model")
    return ("redesign by hand", *names) if unit.strategy == "redesign" else names


def existing(inventory: Inventory) -> tuple[Existing, ...]:
    """Units that nothing constructs whose architecture exists in JAX, by their names or by what stands in the files that they need."""
    units = {unit.id: unit for unit in inventory.units if unit.kind == "module"}
    needed = {need for unit in units.values() for need in unit.needs}
    return tuple(found for unit in units.values() if unit.id not in needed for found in _recognised(inventory, unit, units))


def _recognised(inventory: Inventory, unit: Unit, units: dict[str, Unit]) -> Iterator[Existing]:
    """The first family that the unit is of: names come before marks."""
    name = unit.name.rpartition(".")[2]
    for family in facts().families:
        if re.search(family.names, name, re.IGNORECASE):
            yield Existing(unit.id, family.name, "its name", family.links)
            return
    text = _text(inventory, unit, units)
    for family in facts().families:
        if family.marks and (found := [re.search(mark, text, re.IGNORECASE) for mark in family.marks]) and all(found):
            yield Existing(unit.id, family.name, ", ".join(match[0] for match in found if match), family.links)
            return


def _text(inventory: Inventory, unit: Unit, units: dict[str, Unit]) -> str:
    """The text of the files of a unit and of all units that it needs."""
    seen, waiting = {unit.id}, [unit]
    while waiting:
        near = [units[need] for need in waiting.pop().needs if need in units and need not in seen]
        seen |= {one.id for one in near}
        waiting += near
    paths = sorted({units[one].source for one in seen})
    return "\n".join((inventory.root / path).read_text(encoding="utf-8-sig", errors="replace") for path in paths)
