"""Outputs and buffers agree in float64 where the constructor's plain arguments are others than the example's, as far as the original takes that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from migrate_agent.tools.harness.common import tolerances, trees
from migrate_agent.tools.harness.common.argument_changes import at_an_end
from migrate_agent.tools.harness.common.compare_arrays import Difference, verdict
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.compare.pairs import (
    UNPAIRED,
    drawn,
    draws_of,
    gradient_pairs,
    judged,
    largest_gradient,
    named_pairs,
    output_pairs,
    paired,
    raised_error,
    vanishes,
    where_finite,
)
from migrate_agent.tools.verify.contract.scenario import Answer, Role, Scenario
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict | None:
    """Within the limit that the conditioning allows; `unverified` where random numbers do not pair up. What the candidate refuses on purpose is a
    note, no failure."""
    answered = [(scenario, answer) for scenario, answer in results.answers(Role.CONFIGURATION) if not results.forgives(scenario, answer)]
    worst = verdict("numeric", "configurations_fp64", (item for pair in answered for item in _differences(results, *pair)))
    if worst is None or worst.status == "pass":
        unpaired = [
            scenario for scenario, answer in answered if not answer.error and not answer.facts.get("state") and not paired(scenario, answer)
        ]
        if unpaired:
            arguments = results.configured(unpaired[0])
            return Verdict("numeric", "configurations_fp64", "unverified", detail=f"{unpaired[0].name}: {UNPAIRED}; {arguments}")
        if worst is None:
            return None
    shown = [scenario for scenario, _ in answered if worst.status == "pass" or worst.scenario == scenario.name]
    changes = tuple(results.configured(scenario) for scenario in shown)
    return replace(worst, detail="; ".join([worst.detail, *changes]), changes=changes if worst.status == "fail" else ())


def _differences(results: Results, scenario: Scenario, answer: Answer) -> Iterator[Difference]:
    wrong = [str(name) for name in answer.facts.get("state", ())]
    if answer.error:
        yield raised_error(scenario, answer)
    elif wrong:
        problem = f"parameters or buffers of other names, shapes or kinds ({', '.join(wrong[:4])})"
        yield Difference(scenario.name, float("inf"), 0.0, problem, "state", scenario.name)
    elif not paired(scenario, answer):
        theirs, ours = (any(draw[0] != "bernoulli" for draw in drawn(draws_of(side))) for side in (scenario, answer))
        if theirs != ours:
            contrast = "draws nothing at random, and torch does" if theirs else "draws at random, and torch does not"
            yield Difference(scenario.name, float("inf"), 0.0, f"it {contrast}", "draws", scenario.name)
    else:
        if trees.skeleton(scenario.tree) != trees.skeleton(answer.facts["tree"]):
            yield Difference(f"{scenario.name} output", float("inf"), 0.0, "another form", "tree", scenario.name)
        for pair in (*output_pairs(scenario, answer), *named_pairs(scenario, answer, "state", results.omitted)):
            yield judged(scenario, pair, tolerances.FLOOR_FP64)
        # Where a rate drops everything, all is tied, and a gradient is a convention; but no NaN where torch has none.
        # Evaluation drops nothing, and ties nothing.
        finite_alone = scenario.mode == "train" and at_an_end(results.expected.examples[scenario.example]["changes"])
        scale = tolerances.GLOBAL_SCALE * largest_gradient(scenario)
        for pair in gradient_pairs(scenario, answer):
            pair = where_finite(pair) if finite_alone else pair
            leaf = judged(scenario, pair, tolerances.FLOOR_GRADIENT_FP64, scale)
            # Other arguments may leave no gradient, as `x / abs(x)` does.
            if not leaf.failed or leaf.problem or not (finite_alone or vanishes(scenario, pair)):
                yield leaf


CHECK = Check("numeric", "configurations_fp64", judge, cost=2)
