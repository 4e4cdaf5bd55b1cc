"""The candidate's state has exactly the original's names and shapes, and takes the original's `state_dict`."""

from __future__ import annotations

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict:
    """Fail with the missing, unexpected or differently shaped names, or the error of loading."""
    spec = results.exact["spec"]
    theirs = {name: shape for name, shape in results.described()["state"].items() if name not in results.omitted}
    if "state" not in spec:
        return Verdict("spec", "state_names", "fail", detail=f"its state cannot be read: {spec['error']}")
    ours = spec["state"]
    problems = [f"missing {name}" for name in theirs if name not in ours] + [f"unexpected {name}" for name in ours if name not in theirs]
    problems += [
        f"{name} has shape {ours[name]} instead of {theirs[name]}" for name in theirs if name in ours and theirs[name] != ours[name]
    ]
    if not problems and "load" in spec:
        problems = [f"loading the original's state raised {spec['load']['error']}"]
    detail = "; ".join(problems[:5]) if problems else f"{len(theirs)} parameters and buffers"
    return Verdict("spec", "state_names", "fail" if problems else "pass", float(len(problems)), 0.0, detail)


CHECK = Check("spec", "state_names", judge)
