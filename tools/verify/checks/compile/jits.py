"""The candidate can be compiled: no value of an array decides what Python does."""

from __future__ import annotations

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.contract.scenario import REFUSABLE, raised_in
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict | None:
    """Fail with the line that needs the value of a traced array. Nothing where all that the original gives is NumPy's: that runs in Python."""
    if all(example.get("on_host") for example in results.expected.examples):
        return None
    elsewhere = {item.name for item in results.expected.scenarios if item.role in REFUSABLE or results.may_be_stub(item)}
    # The exact job is enough: both jobs trace the same Python code.
    for name, facts in results.exact["scenarios"].items():
        if facts.get("kind") == "concretisation" and name not in elsewhere:
            detail = f"{name}: {facts['error']}"
            return Verdict("compile", "jits", "fail", detail=detail, scenario=name, error="raised", raised=raised_in(facts))
    return Verdict("compile", "jits", "pass")


CHECK = Check("compile", "jits", judge, cost=0, early=True)
