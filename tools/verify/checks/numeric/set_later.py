"""Outputs, buffers and gradients agree with what a user sets after construction: one submodule in the other mode, other attributes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
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
    judged_rows: list[Difference] = []
    shared = dict[str, None]()
    for pair in answered:
        if pair[0].conditions.beside:
            continue
        rows, names = _closest(results, pair, [other for other in answered if _shares(results, pair[0], other[0])])
        judged_rows += rows
        shared |= dict.fromkeys(names)
    outcome = verdict("numeric", name, judged_rows)
    if outcome is None or outcome.status != "pass" or not shared:
        return outcome
    return replace(outcome, detail=f"{outcome.detail}; the port has one part for these: {', '.join(shared)}")


def _shares(results: Results, scenario: Scenario, other: Scenario) -> bool:
    """Whether the other one is the same call of the port, and of the original with further parts in the other mode of which the port has none."""
    turned, beside = other.conditions.turned, other.conditions.beside
    # The class that holds the part has a place of its own in the port too, and drops by the part there.
    parts = [name for name in beside if name and not any(path.startswith(f"{name}.") for path in turned)]
    if not beside or set(parts) & set(results.exact["spec"].get("parts", ())):
        return False
    return (scenario.example, scenario.mode, scenario.conditions) == (other.example, other.mode, other.conditions._replace(beside=()))


def _closest(
    results: Results, pair: tuple[Scenario, Answer], shared: Sequence[tuple[Scenario, Answer]]
) -> tuple[list[Difference], tuple[str, ...]]:
    """The differences from the original; where there are some, from it with parts together that the port may have one part for, if there are none
    then, with the names of these."""
    rows = list(_differences(results, *pair))
    for other in shared if any(row.failed for row in rows) else ():
        together = list(_differences(results, *other))
        if not any(row.failed for row in together):
            return together, tuple(name or "the unit itself" for name in (*pair[0].conditions.turned, *other[0].conditions.beside))
    return rows, ()


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
