"""How training curves are judged, in either precision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify import limits
from migrate_agent.tools.verify.compare import Difference, verdict
from migrate_agent.tools.verify.pairing import UNPAIRED, paired
from migrate_agent.tools.verify.results import Results


def curve_verdict(results: Results, check: str, precision: str, floor: float) -> Verdict | None:
    """The worst relative difference of the losses. None where the unit is not trained; `unverified` where draws do not pair up."""
    theirs = results.described().get("curves")
    if not theirs:
        return None
    ours = (results.exact if precision == "exact" else results.native).get("curves")
    if not ours or "error" in ours:
        return Verdict("behavioural", check, "fail", detail=ours["error"] if ours else "the candidate was not trained")
    batches = [pair for pair in results.answers("gradient") if pair[0].name in theirs["batches"]]
    if not all(not answer.error and paired(scenario, answer) for scenario, answer in batches):
        return Verdict("behavioural", check, "unverified", detail=UNPAIRED)
    return verdict("behavioural", check, _differences(theirs, ours, precision, floor), "torch's own curve is not finite")


def _differences(theirs: Mapping[str, Any], ours: Mapping[str, Sequence[float]], precision: str, floor: float) -> Iterator[Difference]:
    """Step by step, until rounding noise alone would exceed the cap: from there on two right programs differ as well."""
    exact = precision == "exact"
    factor = limits.NOISE_FACTOR if exact else limits.NOISE_FACTOR_FP32 * limits.EPS32 / limits.EPS64
    cap = limits.CAP_FP64 if exact else limits.CURVE_CAP_FP32
    for optimiser in ("sgd", "adamw"):
        expected, got = np.asarray(theirs[optimiser][precision]), np.asarray(ours[optimiser])
        noise = np.abs(np.asarray(theirs[optimiser]["noisy"]) - np.asarray(theirs[optimiser]["exact"]))
        scale = float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0)) or 1.0
        for step in range(min(len(expected), len(got))):
            label = f"{optimiser}, step {step}"
            limit = max(floor, factor * float(noise[step]) / scale)
            if not np.isfinite(expected[step]) or not limit <= cap:
                break
            yield Difference(label, abs(float(got[step] - expected[step])) / scale, limit)
