"""Outputs agree in float64 at the worst inputs that gradient ascent on their difference finds within the domain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.harness.common.compare_arrays import DROWNED, Difference, verdict
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import NEW_PROCESS, Check
from migrate_agent.tools.verify.compare.pairs import UNPAIRED, judged, output_pairs, paired
from migrate_agent.tools.verify.contract.scenario import Role
from migrate_agent.tools.verify.contract.schedule import SEARCH
from migrate_agent.tools.verify.evidence import search
from migrate_agent.tools.verify.evidence.candidate import Results
from migrate_agent.tools.verify.evidence.search import Worst


def judge(results: Results) -> Verdict | None:
    """Within the limit that the unit's conditioning at that input allows. Applies where an input is a float."""
    start = results.expected.search_start
    if start is None or SEARCH in results.left_out():
        return None
    # With unpaired draws the two programs differ by chance, and the search would only find that.
    if any(
        scenario.name == start.name and (answer.error or not paired(scenario, answer))
        for scenario, answer in results.answers(Role.GRADIENT)
    ):
        return Verdict("numeric", "worst_input", "unverified", detail=UNPAIRED)
    worst = search.outcome(results)
    if isinstance(worst, str):
        return Verdict("numeric", "worst_input", "unverified", detail=worst)
    result = verdict("numeric", "worst_input", _differences(worst))
    if result is None:
        return Verdict("numeric", "worst_input", "pass", worst.error, tolerances.FLOOR_FP64, f"{worst.tried} inputs tried")
    return result if result.status == "fail" else replace(result, detail=f"{worst.tried} inputs tried")


def _differences(worst: Worst) -> Iterator[Difference]:
    for scenario, answer in worst.found:
        for pair in output_pairs(scenario, answer):
            leaf = judged(scenario, pair, tolerances.FLOOR_FP64)
            # Ill-conditioned inputs are what the search finds first.
            if leaf.kind != DROWNED and not (leaf.failed and scenario.undecided(pair.key)):
                yield leaf


CHECK = Check("numeric", "worst_input", judge, cost=NEW_PROCESS + 1)
