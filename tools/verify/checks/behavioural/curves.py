"""Training curves agree in either precision: SGD with momentum and AdamW, from the same weights on the same batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.harness.common.compare_arrays import Difference, verdict
from migrate_agent.tools.harness.common.training_steps import overflows
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import NEW_PROCESS, Check
from migrate_agent.tools.verify.compare.pairs import UNPAIRED, paired
from migrate_agent.tools.verify.contract.scenario import ROUGH_CURVES, Noise, Role
from migrate_agent.tools.verify.evidence.candidate import Results


def _judge(check: str, precision: str, floor: float, results: Results) -> Verdict | None:
    """The worst relative difference of the losses. None where the unit is not trained, or natively where torch's first loss overflows; `unverified` where
    draws do not pair up."""
    theirs = results.described().get("curves")
    if not theirs:
        return None
    if precision == "native" and overflows(theirs):
        return None  # a remark says so; outputs and gradients of the same inputs are compared natively
    ours = (results.exact if precision == "exact" else results.native).get("curves")
    if not ours or "error" in ours:
        return Verdict("behavioural", check, "fail", detail=ours["error"] if ours else "the candidate was not trained")
    batches = [pair for pair in results.answers(Role.GRADIENT) if pair[0].name in theirs["batches"]]
    if not all(not answer.error and paired(scenario, answer) for scenario, answer in batches):
        return Verdict("behavioural", check, "unverified", detail=UNPAIRED)
    narrow = "" if precision == "exact" else _narrow(results)
    differences = _differences(theirs, ours, _rule(precision, floor, narrow), results.expected.noise)
    return verdict("behavioural", check, differences, "torch's own curve is not finite")


def settled(results: Results) -> bool:
    """Whether SGD's steps are equal in all right programs: rounding noise moves none of torch's own losses beyond the cap."""
    theirs = results.described()["curves"]["sgd"]["exact"]
    rule = _rule("exact", tolerances.FLOOR_GRADIENT_FP64, "")
    return all(np.isfinite(theirs)) and all(
        moved <= rule.cap for step in range(1, len(theirs)) for moved in _noise(rule, "sgd", step, theirs, results.expected.noise)
    )


def comparable(results: Results) -> bool:
    """Whether both sides took the steps, with paired draws."""
    theirs, ours = results.described().get("curves"), results.exact.get("curves")
    if not theirs or not ours or "error" in ours:
        return False
    batches = [pair for pair in results.answers(Role.GRADIENT) if pair[0].name in theirs["batches"]]
    return all(not answer.error and paired(scenario, answer) for scenario, answer in batches)


class Rule(NamedTuple):
    """How losses are compared: torch's curve of a `precision`, and the parts of the limit.

    `noise` has the curves with noise that bound the difference of right programs, with a factor each.
    """

    precision: str
    floor: float
    noise: Mapping[str, float]
    of_own_error: float
    cap: float


def _narrow(results: Results) -> str:
    """The narrow dtype that torch's own run computes in, or nothing."""
    names = (scenario.narrow for scenario in results.expected.scenarios if scenario.role == Role.SEED)
    return next((name for name in names if name), "")


def _rule(precision: str, floor: float, narrow: str) -> Rule:
    if precision == "exact":
        return Rule(precision, floor, {"noisy": tolerances.NOISE_FACTOR, "rough": 1.0}, 0.0, tolerances.CAP_FP64)
    epsilon = tolerances.EPS_NATIVE[narrow or "float32"]
    own = tolerances.FP32_FACTOR if narrow else 0.0
    floor = max(floor, tolerances.CURVE_NARROW * epsilon) if narrow else floor
    cap = tolerances.CURVE_CAP_NARROW * epsilon if narrow else tolerances.CURVE_CAP_FP32
    # Curves pass gradients' kinks: as for those, two programs may each cross one that the other does not.
    noise = {"noisy": tolerances.native_noise(narrow) / tolerances.EPS64, **dict.fromkeys(ROUGH_CURVES, tolerances.KINK_FACTOR)}
    return Rule(precision, floor, noise, own, cap)


def _differences(theirs: Mapping[str, Any], ours: Mapping[str, Sequence[float]], rule: Rule, noise: Noise | None) -> Iterator[Difference]:
    """The difference of each step, until rounding noise alone exceeds the cap."""
    for optimiser in (name for name in ("sgd", "adamw") if name in theirs):
        curves = {kind: np.asarray(values) for kind, values in theirs[optimiser].items() if kind in ("exact", rule.precision)}
        expected, actual, exact = curves[rule.precision], np.asarray(ours[optimiser]), curves["exact"]
        scale = _scale(expected)
        for step in range(min(len(expected), len(actual))):
            own = rule.of_own_error * abs(float(expected[step] - exact[step])) / scale
            error = abs(float(actual[step] - expected[step])) / scale
            limit = rule.floor + own
            # Noise only widens the limit, so a step within the floor needs no noisy runs.
            if not error <= limit and np.isfinite(expected[step]):
                for moved in _noise(rule, optimiser, step, exact, noise, scale):
                    limit = max(limit, moved + own)
                    if error <= limit or not limit <= rule.cap:
                        break
            # Leaving is safe: from here on two right programs differ as well, and the first loss is
            # compared in any case.
            if not np.isfinite(expected[step]) or not (limit <= rule.cap or (step == 0 and np.isfinite(limit))):
                break
            yield Difference(f"{optimiser}, step {step}", error, limit)


def _scale(losses: Any) -> float:
    """The largest finite loss, which differences of losses are relative to."""
    values = np.asarray(losses)
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) or 1.0


def _noise(rule: Rule, optimiser: str, step: int, exact: Any, noise: Noise | None, scale: float = 0.0) -> Iterator[float]:
    """The changes of a loss by rounding noise, with the rule's factors, relative to `scale`. Each costs a curve, so who has seen enough asks no further."""
    if noise is None:
        return
    for kind, factor in rule.noise.items():
        yield factor * abs(float(noise.of_curve(optimiser, kind)[step] - exact[step])) / (scale or _scale(exact))


CHECKS = (
    Check("behavioural", "curves_fp64", partial(_judge, "curves_fp64", "exact", tolerances.FLOOR_GRADIENT_FP64)),
    # In the dtypes of a user's run, an update may vanish in rounding that float64 keeps.
    Check("behavioural", "curves_fp32", partial(_judge, "curves_fp32", "native", tolerances.CURVE_FP32), cost=NEW_PROCESS),
)
