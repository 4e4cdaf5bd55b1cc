"""What torch trains is a parameter of the candidate, and what torch only keeps is none."""

from __future__ import annotations

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.check import Check
from migrate_agent.tools.verify.results import Results


def judge(results: Results) -> Verdict | None:
    """Fail with the names that are of the other kind; a parameter that is not trained may be of either. Applies where names agree."""
    kinds = results.exact["spec"].get("kinds")
    if not kinds:
        return None
    described = results.described()
    parameters, frozen = set(described["parameters"]), set(described.get("frozen", ()))
    sized = [name for name, shape in described["state"].items() if 0 not in shape and name not in frozen]
    wrong = [f"{name} is a {kinds[name]}" for name in sized if name in kinds and (kinds[name] == "parameter") != (name in parameters)]
    return Verdict("spec", "state_kinds", "fail" if wrong else "pass", float(len(wrong)), 0.0, "; ".join(wrong[:5]))


CHECK = Check("spec", "state_kinds", judge, cost=2)
