"""Outputs have the original's structure: equal containers, keys and class names, and arrays of equal shapes."""

from __future__ import annotations

from migrate_agent.tools.harness.common import trees
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.compare.pairs import output_pairs
from migrate_agent.tools.verify.contract.scenario import Role
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict | None:
    """Fail with the first scenario whose output has another structure or shape."""
    compared = 0
    for scenario, answer in results.answers(Role.SEED, Role.GRADIENT, Role.SHAPE):
        if answer.error:
            continue
        compared += 1
        theirs, ours = trees.skeleton(scenario.tree), trees.skeleton(answer.facts["tree"])
        if theirs != ours:
            return Verdict("spec", "output_tree", "fail", detail=f"{scenario.name}: {ours} instead of {theirs}"[:300])
        for pair in output_pairs(scenario, answer):
            if pair.got is None or pair.expected.shape != pair.got.shape:
                shape = "nothing" if pair.got is None else list(pair.got.shape)
                return Verdict("spec", "output_tree", "fail", detail=f"{pair.label}: shape {shape} instead of {list(pair.expected.shape)}")
    return Verdict("spec", "output_tree", "pass", detail=f"{compared} outputs") if compared else None


CHECK = Check("spec", "output_tree", judge, cost=3)
