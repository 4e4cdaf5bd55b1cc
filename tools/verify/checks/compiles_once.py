"""One compilation per shape, none on the second call, and a call leaves the module's structure as it was (else the next one recompiles)."""

from __future__ import annotations

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.check import Check
from migrate_agent.tools.verify.results import Results


def judge(results: Results) -> Verdict | None:
    """Fail where XLA compiled more often than there were examples, or where the graph definition changes."""
    found = results.native.get("compile") or {}
    if "error" in found:
        return Verdict("compile", "compiles_once", "fail", detail=found["error"])
    if not found:
        return None
    if not found["stable"]:
        return Verdict(
            "compile", "compiles_once", "fail", detail="a call changes a static attribute of the module, so that every call compiles anew"
        )
    wanted = len({scenario.facts["example"] for scenario, answer in results.answers("seed", kind="native") if not answer.error})
    count = int(results.native["compilations"])
    return Verdict("compile", "compiles_once", "pass" if count <= wanted else "fail", float(count), float(wanted))


CHECK = Check("compile", "compiles_once", judge)
