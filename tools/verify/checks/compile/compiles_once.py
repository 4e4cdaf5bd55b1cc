"""The candidate compiles once for each shape, and a call leaves the module's structure as it was (else the next call recompiles).

What the original's first call resolves for good, such as the length of a cache that it fills, the port's may resolve too. Where the original's call
leaves arrays in attributes, such as maps for a log, the port's may leave them there too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.contract.scenario import Answer, Role, Scenario
from migrate_agent.tools.verify.evidence.candidate import Results

MOST_NAMES = 5


def judge(results: Results) -> Verdict | None:
    """Fail where XLA compiled more often than there were examples, or where the graph definition changes."""
    contract = results.native.get("compile") or {}
    if "error" in contract:
        return Verdict("compile", "compiles_once", "fail", detail=contract["error"])
    if not contract:
        return None
    if not contract["stable"] and not _resolves(results, contract):
        return Verdict("compile", "compiles_once", "fail", detail=_told(contract))
    # Only forward passes are counted (`candidate/native.py`). Seeds and edges of one example share a program; every other shape, dtype and
    # mode needs its own, and so has every value of an array of NumPy that is a constant. What raises is not compiled.
    passes = ((scenario, answer) for scenario, answer in results.answers(kind="native") if not scenario.gradient)
    forms = {(form, constants) for scenario, answer in passes if not answer.error for form, constants in _programs(scenario, answer)}
    expected = len(forms)
    count = int(results.native["compilations"])
    return Verdict("compile", "compiles_once", "pass" if count <= expected else "fail", float(count), float(expected))


def _resolves(results: Results, facts: Mapping[str, Any]) -> bool:
    """Whether the first call alone changes the structure, in attributes that the original's first call alone changes too, to the same values, or in
    which it leaves arrays."""
    resolved = results.expected.examples[0].get("resolved") or {}
    theirs = {_plain(path): value for path, value in resolved.items()}
    ours = {_plain(path): value for path, value in (facts.get("resolved") or {}).items()}
    told = {_plain(path) for path in facts.get("changed", ())}
    arrays = {_plain(path) for path in results.expected.examples[0].get("held") or ()}
    alike = {path for path in told if path in arrays or (path in ours and path in theirs and ours[path] == theirs[path])}
    return facts.get("settles") is True and bool(told) and alike == told


def _plain(path: object) -> str:
    """A path without the `layers` of `nnx.Sequential`."""
    return ".".join(part for part in str(path).split(".") if part != "layers")


def _form(scenario: Scenario) -> tuple[object, ...]:
    """What a program of its own is compiled for."""
    shape = scenario.name if scenario.role in (Role.SHAPE, Role.LONG) else ""
    return (
        scenario.example,
        scenario.mode,
        scenario.drawing,
        shape,
        tuple(scenario.leaf_dtypes),
        scenario.conditions.width,
    )


def _programs(scenario: Scenario, answer: Answer) -> list[tuple[object, str]]:
    """A scenario's form for each set of constants that its calls have."""
    return [(_form(scenario), str(constants)) for constants in answer.facts.get("constants") or [""]]


def _told(facts: Mapping[str, Any]) -> str:
    names = [str(name) for name in facts.get("changed", ())][:MOST_NAMES]
    structure = f"static structure of the module ({', '.join(names)})" if names else "static structure of the module"
    if facts.get("settles") is True:
        return f"the first call changes {structure}, so that the second call compiles anew; from then on it stays"
    return f"a call changes {structure}, so that every call compiles anew"


CHECK = Check("compile", "compiles_once", judge)
