"""One compilation per shape, none on the second call, and a call leaves the module's structure as it was (else the next one recompiles)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from migrate_agent.tools.harness.common.argument_changes import LONG
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.evidence.candidate import Results

MOST_NAMES = 5


def judge(results: Results) -> Verdict | None:
    """Fail where XLA compiled more often than there were examples, or where the graph definition changes."""
    found = results.native.get("compile") or {}
    if "error" in found:
        return Verdict("compile", "compiles_once", "fail", detail=found["error"])
    if not found:
        return None
    if not found["stable"]:
        return Verdict("compile", "compiles_once", "fail", detail=_told(found))
    answered = (scenario.facts for scenario, answer in results.answers("seed", "shape", LONG, kind="native") if not answer.error)
    wanted = len({(facts["example"], facts["name"] if facts["role"] != "seed" else "") for facts in answered})
    count = int(results.native["compilations"])
    return Verdict("compile", "compiles_once", "pass" if count <= wanted else "fail", float(count), float(wanted))


def _told(found: Mapping[str, Any]) -> str:
    names = [str(name) for name in found.get("changed", ())][:MOST_NAMES]
    what = f"static structure of the module ({', '.join(names)})" if names else "static structure of the module"
    if found.get("settles") is True:
        return f"the first call changes {what}, so that the second call compiles anew; from then on it stays"
    return f"a call changes {what}, so that every call compiles anew"


CHECK = Check("compile", "compiles_once", judge)
