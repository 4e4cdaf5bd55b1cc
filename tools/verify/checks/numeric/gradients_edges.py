"""Gradients are finite where torch's are at the edges (zeros, saturation, ties, equal rows), and agree where the function has one there
that is more than rounding noise.

A norm, a deviation or an `atan2` written out gives NaN at zero, and so does the branch of a `where` that was not taken: training ends there.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.harness.common.compare_arrays import Difference, rms, verdict
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.checks.shared.outputs import usually
from migrate_agent.tools.verify.compare.pairs import Pair, difference, gradient_pairs, paired, raised_error, where_finite
from migrate_agent.tools.verify.contract.scenario import Role, Scenario
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict | None:
    """Within the limit that the unit's conditioning allows. Applies where the original differentiates at an edge."""
    return verdict("numeric", "gradients_edges", _differences(results))


def _differences(results: Results) -> Iterator[Difference]:
    for scenario, answer in results.answers(Role.GRADIENT_EDGE):
        if answer.error:
            yield raised_error(scenario, answer)
        elif paired(scenario, answer):
            pairs = gradient_pairs(scenario, answer)
            largest = max((rms(pair.expected) for pair in pairs), default=0.0)
            largest = max(largest, usually(results, scenario, Role.GRADIENT, "grad/", "input-grad/"))
            for pair in pairs:
                yield _difference(scenario, pair, tolerances.GLOBAL_SCALE * largest)


def _difference(scenario: Scenario, pair: Pair, scale: float) -> Difference:
    if pair.got is None or pair.got.shape != pair.expected.shape:
        return difference(scenario, pair, tolerances.FLOOR_GRADIENT_FP64, scale)
    finite = np.isfinite(pair.expected)
    lost = int((finite & ~np.isfinite(pair.got)).sum())
    if lost:
        return Difference(
            pair.label, float("inf"), 0.0, f"not finite, where torch's is ({lost} of {finite.size} elements)", "nonfinite"
        ).at(scenario.name, pair.key)
    leaf = difference(scenario, where_finite(pair), tolerances.FLOOR_GRADIENT_FP64, scale)
    if leaf.failed and (scenario.undecided(pair.key) or _is_noise(scenario, pair, scale)):
        return Difference(pair.label, 0.0, tolerances.FLOOR_GRADIENT_FP64)
    return leaf


def _is_noise(scenario: Scenario, pair: Pair, scale: float) -> bool:
    """Whether rounding alone may change torch's own gradient by more than any limit allows: past saturation, `1 - tanh(x)**2` is what rounding left."""
    size = max(rms(pair.expected), scale)
    return tolerances.NOISE_FACTOR * scenario.changes_by_noise(pair.key)[0] > tolerances.CAP_FP64 * size


CHECK = Check("numeric", "gradients_edges", judge, cost=4)
