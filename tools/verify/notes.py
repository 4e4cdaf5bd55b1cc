"""What a reader is told beside the verdicts."""

from __future__ import annotations

from collections.abc import Sequence

UNDETERMINED = "Undetermined"
"""The exception of `torch_modes` that says why the original's answer, which it gives, is not compared."""


def left_out(skipped: Sequence[str]) -> list[str]:
    """What was not compared, by reason. Each entry is a name, with the original's error in brackets where there is one."""
    reasons: dict[str, list[str]] = {}
    for each in skipped:
        name, _, error = each.partition(" (")
        kind, _, text = error.removesuffix(")").partition(": ")
        reasons.setdefault(text if kind == UNDETERMINED else "the original does not take it", []).append(name)
    return [f"not compared, since {reason}: {', '.join(names)}" for reason, names in reasons.items()]


def elsewhere(changes: str, error: str) -> str:
    """Of another configuration that the candidate does not run in."""
    return f"not compared as constructed with {changes}, which the original takes: the rewrite raises {error}"
