"""Defines `Check`, and finds the checks: modules below `checks/` have one as `CHECK`, or several of one shape as `CHECKS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

from migrate_agent.tools.discovery import modules_below
from migrate_agent.tools.types import Verdict

if TYPE_CHECKING:
    from migrate_agent.tools.verify.evidence.candidate import Results

NEW_PROCESS = 5
STAGES = ("static", "spec", "numeric", "behavioural", "compile", "portable", "reach", "performance")


@dataclass(frozen=True)
class Check:
    """`judge` returns one verdict, or None where the check does not apply. Within a stage, cheaper ones (`cost`) come first; those that need
    one more process (`NEW_PROCESS` and above) are skipped once the stage has failed.

    `early` checks run before their stage, as soon as the spec stage has passed: they explain why later stages could not run.
    """

    stage: str
    name: str
    judge: Callable[[Results], Verdict | None]
    cost: int = 1
    early: bool = False


@cache
def load_checks() -> tuple[Check, ...]:
    """All checks in the order in which they run. Raises `ValueError` for a duplicate name or an unknown stage."""
    checks: dict[str, Check] = {}
    for module in modules_below("migrate_agent.tools.verify.checks"):
        for check in _checks_of(module):
            if check.name in checks or check.stage not in STAGES:
                raise ValueError(f"check {check.name}: its name is taken, or its stage {check.stage!r} is unknown")
            checks[check.name] = check
    return tuple(sorted(checks.values(), key=_order))


def _checks_of(module: ModuleType) -> tuple[Check, ...]:
    """What a module defines: nothing where checks share it."""
    check: Check | None = getattr(module, "CHECK", None)
    several: tuple[Check, ...] = getattr(module, "CHECKS", ())
    return several if check is None else (check, *several)


def _order(check: Check) -> tuple[float, int, str]:
    stage = STAGES.index("spec") + 0.5 if check.early else STAGES.index(check.stage)
    return stage, check.cost, check.name
