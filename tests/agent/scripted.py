"""Scripted services, for the plumbing of the graph alone: real scan, no code run, drafts and verdicts by what a class's docstring asks for.

A class whose docstring says `script: fail` (or `hole`, `unjudged`, `no example`, `inside`, `crash`) meets that fate; all others pass.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from migrate_agent.agent.config.config import Config
from migrate_agent.agent.loop.scope import needed_units
from migrate_agent.agent.loop.services import Services
from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.record.infer import Guess
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import (
    Draft,
    Evidence,
    Example,
    Hole,
    Inventory,
    Job,
    Limits,
    Observations,
    Outcome,
    Recording,
    Run,
    Span,
    Unit,
    Verdict,
)

FATES: dict[str, Outcome] = {"fail": "fail", "unjudged": "unverified"}


class NoSandbox:
    """Runs nothing."""

    name = "scripted"

    def run(self, job: Job) -> Run:
        """No scripted service asks for it."""
        raise AssertionError("the scripted services run no jobs")

    def release(self, run: Run) -> None:
        """Nothing to remove."""

    def close(self) -> None:
        """Nothing to stop."""


def fate(inventory: Inventory, unit: Unit) -> str:
    """What the unit's docstring asks for, "" where it asks for nothing."""
    tree = ast.parse((inventory.root / unit.source).read_text())
    node = next(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == unit.name)
    return (ast.get_docstring(node) or "").partition("script: ")[2]


def record(inventory: Inventory, examples: Sequence[Example], sandbox: Sandbox, folder: Path, limits: Limits) -> Recording:
    """An example for every unit but those that ask for none, or that run inside others only."""
    fates = {unit.id: fate(inventory, unit) for unit in inventory.units}
    recorded = tuple(Example(key, "", "", origin="recording") for key, one in fates.items() if one not in ("no example", "inside"))
    return Recording((*examples, *recorded), {}, {}, inside={key: "its call is odd" for key, one in fates.items() if one == "inside"})


def infer(inventory: Inventory, unit: Unit, sandbox: Sandbox, folder: Path, limits: Limits) -> Guess:
    """Never knows."""
    return Guess()


def compose(
    inventory: Inventory,
    observations: Observations,
    units: Sequence[str],
    overrides: Mapping[str, str],
    examples: Sequence[Example],
    refused: Collection[str] = (),
) -> Draft:
    """One class of one line for each unit and all that these need, and a hole where one asks for it. Refused ones are there as they were."""
    held = {*units, *(need for unit in units for need in needed_units(inventory, unit))}
    wanted = [unit for unit in inventory.units if unit.id in held]
    if any(fate(inventory, unit) == "crash" for unit in wanted):
        raise RuntimeError("scripted crash")
    files: dict[str, str] = {}
    for unit in wanted:
        files[unit.target] = files.get(unit.target, "") + overrides.get(unit.id, f"class {unit.name}:\n    pass\n")
    holes = [unit for unit in wanted if fate(inventory, unit) == "hole" and unit.id not in overrides]
    return Draft(
        files, tuple(Hole(unit.source, Span(unit.line, 0, unit.line, 5), "scripted", "asked for", "text", unit.id) for unit in holes)
    )


def translate(inventory: Inventory, observations: Observations, example: Example) -> Example:
    """The same example."""
    return example


def verify(
    unit: Unit,
    examples: Sequence[Example],
    translated: Sequence[Example],
    original: Path,
    candidate: Path,
    inventory: Inventory,
    sandbox: Sandbox,
    folder: Path,
    config: Config,
    progress: Callable[[str], None],
    stubs: bool = False,
    reached_before: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Evidence:
    """Two verdicts, the second as the unit asks, unless the candidate's class says `repaired`."""
    progress("scripted")
    repaired = "repaired" in (candidate / unit.target).read_text()
    outcome: Outcome = "pass" if repaired else FATES.get(fate(inventory, unit), "pass")
    rows = (Verdict("static", "parses", "pass"), Verdict("numeric", "forward_fp64", outcome, 1e-14, 1e-11, f"scripted {outcome}"))
    return Evidence(unit.id, rows, 0.5)


def services(**changes: object) -> Services:
    """The scripted services, with some of them changed."""
    from dataclasses import replace

    plain = Services(
        scan=scan,
        examples=lambda inventory, config: config.examples(),
        record=record,
        infer=infer,
        compose=compose,
        mentions=lambda inventory, observations, unit, examples: tuple(needed_units(inventory, unit)),
        translate=translate,
        verify=verify,
        open_sandbox=lambda kind, device: NoSandbox(),
    )
    return replace(plain, **changes)  # type: ignore[arg-type]
