"""Every parameter that torch trains is a parameter of the candidate, and no buffer is one."""

from __future__ import annotations

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.evidence.candidate import Results

NNX = "nnx"
"""The library that has variables beside parameters: an optimiser of `nnx.Param` trains what is one."""


def judge(results: Results) -> Verdict | None:
    """Fail with the names of the other kind. Applies where names agree; in a port of a library that has one kind alone, a frozen parameter may be of it."""
    kinds = results.exact["spec"].get("kinds")
    if not kinds:
        return None
    described = results.described()
    frozen = set(described.get("frozen", ()))
    parameters = set(described["parameters"]) - frozen
    either = frozen if results.port is not None and results.exact["spec"].get("library") != NNX else set()
    # An empty array shows no ones or zeros, by which kinds are found.
    sized = [name for name, shape in described["state"].items() if 0 not in shape and name not in either]
    wrong = [name for name in sized if name in kinds and (kinds[name] == "parameter") != (name in parameters)]
    said = [f"{name} is a {kinds[name]}" + (", and torch does not train it" if name in frozen else "") for name in wrong[:5]]
    return Verdict("spec", "state_kinds", "fail" if wrong else "pass", float(len(wrong)), 0.0, "; ".join(said))


CHECK = Check("spec", "state_kinds", judge, cost=2)
