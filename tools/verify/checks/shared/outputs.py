"""Errors of outputs and named arrays, over all scenarios of some roles."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.harness.common.compare_arrays import DROWNED, INFINITE, Difference, rms
from migrate_agent.tools.harness.common.input_sampling import Extreme
from migrate_agent.tools.verify.compare.pairs import (
    gives_nan,
    judged,
    largest_gradient,
    named_pairs,
    output_pairs,
    paired,
    raised_error,
    saturated,
    where_finite,
)
from migrate_agent.tools.verify.contract.scenario import Role, Scenario
from migrate_agent.tools.verify.evidence.candidate import Results


def output_differences(results: Results, *roles: str) -> Iterator[Difference]:
    """Errors of all outputs in scenarios of these roles, whose draws pair up; a candidate that raises is a difference too."""
    for scenario, answer in results.answers(*roles):
        if answer.error:
            if not results.forgives(scenario, answer):
                yield raised_error(scenario, answer)
        elif paired(scenario, answer):
            for pair in output_pairs(scenario, answer):
                leaf = judged(
                    scenario, pair, tolerances.FLOOR_FP64, tolerances.GLOBAL_SCALE * usually(results, scenario, Role.SEED, pair.key or "-")
                )
                # Asked of failures alone, since the answer may cost a run of the original.
                if not (leaf.failed and scenario.undecided(pair.key)):
                    yield leaf


def usually(results: Results, scenario: Scenario, role: str, *names: str) -> float:
    """The largest RMS of arrays with these names, or of these kinds (`grad/`), in the first scenario of this role.

    0 except for scenarios at large inputs. There, values far below it are what saturation left: 1e-130 in
    one formula, and 0 in another.
    """
    if scenario.extreme != Extreme.LARGE:
        return 0.0
    alike = (candidate for candidate in results.expected.scenarios if (candidate.role, candidate.example) == (role, scenario.example))
    usual = next(alike, None)
    arrays = usual.arrays.items() if usual is not None else ()
    named = [value for key, value in arrays if (key in names or f"{key.partition('/')[0]}/" in names) and value.dtype.kind in "fc"]
    return max(map(rms, named), default=0.0)


def named_differences(results: Results, kind: str, *roles: str, floor: float) -> Iterator[Difference]:
    """Errors of named arrays in scenarios of these roles whose draws pair up."""
    for scenario, answer in results.answers(*roles):
        # The checks of outputs say of these why they cannot be compared.
        if answer.error or not paired(scenario, answer):
            continue
        pairs = named_pairs(scenario, answer, kind, results.omitted if kind == "state" else ())
        largest = largest_gradient(scenario) if "grad" in kind else 0.0
        for pair in pairs:
            if saturated(pair, largest):
                yield Difference(pair.label, 0.0, floor, kind=DROWNED).at(scenario.name, pair.key)
            elif "grad" not in kind or not gives_nan(scenario):
                yield judged(scenario, pair, floor, tolerances.GLOBAL_SCALE * largest)
            elif pair.expected.size and not np.isfinite(pair.expected).any():
                yield Difference(pair.label, 0.0, floor, kind=INFINITE).at(scenario.name, pair.key)
            else:
                yield judged(scenario, where_finite(pair), floor, tolerances.GLOBAL_SCALE * largest)


def applies(results: Results, *roles: str, narrow: bool | None = None, kind: str = "exact") -> bool:
    """Whether the candidate is asked for scenarios of these roles, and its job of this kind had time for one; where asked, native ones that torch
    computes in a narrow dtype, or that it does not."""
    omitted = results.left_out(kind)
    requested = (scenario for scenario in results.expected.scenarios if scenario.role in roles and results.asks(scenario))
    scenarios = [scenario for scenario in requested if scenario.name not in omitted]
    return any(narrow is None or (scenario.native is not None and bool(scenario.narrow) == narrow) for scenario in scenarios)
