"""Class attributes, defaults and enum members of the unit and of the helper classes that its constructor takes are the original's."""

from __future__ import annotations

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.evidence.candidate import Results

MOST = 4
"""Differences that the detail names."""


def judge(results: Results) -> Verdict | None:
    """Fail with the values that differ. A port with another constructor need not have the helper classes: what it lacks is not judged."""
    theirs, ours = results.described().get("values") or {}, results.exact["spec"].get("values")
    if not theirs or not isinstance(ours, dict):
        return None
    # NNX has some names itself, and the mirror's gain a line below.
    pairs = {name: (value, ours.get(name, ours.get(f"{name}_"))) for name, value in theirs.items() if value is not None}
    wrong = [name for name, (value, own) in pairs.items() if own != value and not (own is None and results.port is not None)]
    told = "; ".join(f"{name} is {_told(pairs[name][1])} instead of {_told(pairs[name][0])}" for name in wrong[:MOST])
    return Verdict(
        "spec", "class_values", "fail" if wrong else "pass", float(len(wrong)), 0.0, told or f"{len(pairs)} attributes and defaults"
    )


def _told(row: object) -> str:
    """The value of a row in a reader's words."""
    match row:
        case None:
            return "missing"
        case ["value", _, text]:
            return str(text)
        case ["enum", kind, name]:
            return f"{kind}.{name}"
        case [kind, list(items)]:
            return f"{kind}({', '.join(map(_told, items))})"
    return str(row)


CHECK = Check("spec", "class_values", judge)
