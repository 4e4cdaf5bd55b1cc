"""What a reader is told beside the verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from migrate_agent.tools.harness.common.argument_changes import CONFIGURED, LONG

if TYPE_CHECKING:
    from migrate_agent.tools.verify.evidence.candidate import Results

EVALUATES = (
    "newly constructed, the rewrite is in evaluation mode, and torch's module in training mode: call `train()` where torch's was not called"
)
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


def constructed(results: Results) -> list[str]:
    """Whether a rewrite evaluates where torch, newly constructed, trains. What the candidate's process tells may have any form."""
    spec = results.exact.get("spec")
    ours = spec.get("trains") if isinstance(spec, dict) else None
    return [EVALUATES] if results.described().get("trains") is True and ours is False else []


def elsewhere(results: Results) -> list[str]:
    """Of other configurations and ranks that could not be compared: why. What the candidate's process tells of them may have any form."""
    from migrate_agent.tools.verify.checks.shared.outputs import UNPAIRED, paired

    found = []
    for scenario, answer in results.answers(CONFIGURED, "rank", LONG):
        try:
            state = answer.facts.get("state")
            why = f"the rewrite raises {answer.error[:300]}" if answer.error else "" if state or paired(scenario, answer) else UNPAIRED
        except (KeyError, IndexError, TypeError, AttributeError):
            why = "the rewrite's process told nothing of it"
        if why:
            ranks = "on inputs with one more axis in front"
            how = {"rank": ranks, LONG: f"on longer inputs ({scenario.name})"}.get(
                scenario.facts["role"]
            ) or f"as {results.configured(scenario)}"
            found.append(f"not compared {how}, which the original takes: {why}")
    return list(dict.fromkeys(found))


def trained(results: Results) -> list[str]:
    """What a port keeps as a parameter and torch does not train."""
    described, kinds = results.described(), results.exact["spec"].get("kinds") if isinstance(results.exact.get("spec"), dict) else None
    if results.port is None or not isinstance(kinds, dict):
        return []
    names = [name for name in described.get("frozen", ()) if kinds.get(name) == "parameter"]
    return [f"torch does not train {', '.join(names[:4])}: leave it out of the optimiser"] if names else []
