"""Outputs, buffers and gradients agree with what a user sets after construction: one submodule in the other mode, other attributes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from migrate_agent.tools.harness.common import tolerances, trees
from migrate_agent.tools.harness.common.compare_arrays import Difference, verdict
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.compare.pairs import (
    drawn,
    gradient_pairs,
    judged,
    largest_gradient,
    named_pairs,
    output_pairs,
    paired,
    raised_error,
)
from migrate_agent.tools.verify.contract.scenario import Answer, Role, Scenario
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(name: str, role: Role, results: Results) -> Verdict | None:
    """Within the limit that the conditioning allows. A port without that part or attribute cannot be asked, which a note tells."""
    answered = [pair for pair in results.answers(role) if not (pair[1].facts.get("absent") or results.forgives(*pair))]
    return verdict("numeric", name, (item for pair in answered for item in _differences(results, *pair)))


def _differences(results: Results, scenario: Scenario, answer: Answer) -> Iterator[Difference]:
    if answer.error:
        yield raised_error(scenario, answer)
        return
    theirs, ours = drawn(scenario.draws), drawn(answer.facts["draws"])
    if bool(theirs) != bool(ours):
        contrast = "draws nothing at random, and torch does" if theirs else "draws at random, and torch does not"
        yield Difference(scenario.name, float("inf"), 0.0, f"it {contrast}", "draws", scenario.name)
    elif paired(scenario, answer):
        if trees.skeleton(scenario.tree) != trees.skeleton(answer.facts["tree"]):
            yield Difference(f"{scenario.name} output", float("inf"), 0.0, "another form", "tree", scenario.name)
        for pair in (*output_pairs(scenario, answer), *named_pairs(scenario, answer, "state", results.omitted)):
            yield judged(scenario, pair, tolerances.FLOOR_FP64)
        scale = tolerances.GLOBAL_SCALE * largest_gradient(scenario)
        for pair in gradient_pairs(scenario, answer):
            yield judged(scenario, pair, tolerances.FLOOR_GRADIENT_FP64, scale)


CHECKS = (
    # A port that hands its own mode down shows nothing while all parts have the same one.
    Check("numeric", "part_modes", partial(judge, "part_modes", Role.PART_MODES), cost=3),
    # What the constructor has computed of an attribute keeps its old value.
    Check("numeric", "attributes", partial(judge, "attributes", Role.ATTRIBUTES), cost=3),
)
