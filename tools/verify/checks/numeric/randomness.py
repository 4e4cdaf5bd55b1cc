"""Both sides ask for the same random numbers: as many of each kind and shape, and dropout in the same modes."""

from __future__ import annotations

from collections.abc import Sequence

from migrate_agent.tools.harness.common.random_streams import HOST, REPEATED
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.compare.pairs import UNPAIRED, drawn, paired
from migrate_agent.tools.verify.contract.scenario import Role
from migrate_agent.tools.verify.evidence.candidate import Results

FIXED = "it draws from a generator of Python or numpy while it is traced: `jit` fixes the number, `jax.random` draws one for each call"

ALIKE = "steps of a loop draw with one key, so that they all draw the same numbers: split the key, or fold the number of the step into it"


def judge(results: Results) -> Verdict | None:
    """Fail where one side drops and the other does not, or where the candidate draws on the host or the same in each step; `unverified` where other draws do not pair up.

    Applies where either side draws.
    """
    drawing = 0
    for scenario, answer in results.answers(Role.SEED, Role.GRADIENT, Role.SHAPE):
        if answer.error:
            continue
        theirs, ours = drawn(scenario.draws), drawn(answer.facts["draws"])
        drawing += bool(theirs or ours)
        if any(draw[0] == HOST for draw in ours):
            return Verdict("numeric", "randomness", "fail", detail=f"{scenario.name}: {FIXED}")
        if any(draw[0] == REPEATED for draw in ours):
            return Verdict("numeric", "randomness", "fail", detail=f"{scenario.name}: {ALIKE}")
        if not paired(scenario, answer):
            detail = f"{scenario.name}: {UNPAIRED}: {_told(ours)} instead of {_told(theirs)}"
            return Verdict("numeric", "randomness", "unverified", detail=detail[:300])
        if not theirs and ours:
            return Verdict(
                "numeric",
                "randomness",
                "fail",
                detail=f"{scenario.name}: it drops at random in {scenario.mode} mode, torch does not",
            )
    return Verdict("numeric", "randomness", "pass", detail=f"{drawing} scenarios draw") if drawing else None


def _told(draws: Sequence[Sequence[object]]) -> str:
    return ", ".join(f"{draw[0]}{draw[1]}" for draw in draws[:6]) or "none"


CHECK = Check("numeric", "randomness", judge, cost=0)
