"""Sheets and changes for tests."""

from __future__ import annotations

from collections.abc import Iterable

from migrate_agent.agent.pr.run import Change
from migrate_agent.agent.pr.sheet import Exercise, Sheet
from migrate_agent.tools.types import Verdict

VERDICTS = (
    Verdict("static", "parses", "pass", detail="3 files"),
    Verdict("numeric", "forward_fp64", "pass", 1.8e-16, 1e-11, "5 leaves compared"),
    Verdict("numeric", "gradients_inputs", "pass", 9.5e-11, 1e-10),
    Verdict("numeric", "initialisation", "pass", 0.61, 1e-8),
)


def sheet(unit: str = "model.py:Net", needs: Iterable[str] = (), verdicts: tuple[Verdict, ...] = VERDICTS, **facts: object) -> Sheet:
    """A sheet with these facts."""
    source, _, name = unit.partition(":")
    plain = Sheet(unit, source, name, source.replace(".py", "_jax.py"), "b" * 40, "rules", "o", "p", tuple(needs), verdicts=verdicts)
    exercise = Exercise("8, act='a|b'", "x", "recording", ("x: float32 (4, 8)",))
    return Sheet(**{**vars(plain), "exercises": (exercise,), **facts})


def change(unit: str, needs: Iterable[str] = (), paths: Iterable[str] = ()) -> Change:
    """A change of these files."""
    return Change(sheet(unit, needs), f"commit of {unit}", frozenset(paths))
