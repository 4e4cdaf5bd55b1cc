"""Dropout with real randomness: as many independent draws of each rate as in torch, new ones each call, the same ones for the same key."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain

from migrate_agent.tools.harness.common import budgets, tolerances
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import NEW_PROCESS, Check
from migrate_agent.tools.verify.contract.scenario import REFUSABLE, first_drawing
from migrate_agent.tools.verify.evidence.candidate import Results

UNMEASURED = "the first method that draws is a stub, and real randomness was measured in no other"


def judge(results: Results) -> Verdict | None:
    """Fail with the first difference from torch. Applies where torch draws in training mode."""
    measured = results.native.get("dropout")
    if measured is None:
        return None
    drawing = first_drawing(results.expected.scenarios)
    if drawing is None or (drawing.role in REFUSABLE and any(answer.error for _, answer in results.answers(drawing.role))):
        return None
    if results.refuses_guess(drawing):
        # A stub takes the place of what draws. Real randomness was measured there alone, so that nothing is known of what draws elsewhere.
        others = [one for one in results.expected.scenarios if one.mode == "train" and one.draws and not results.refuses_guess(one)]
        return Verdict("numeric", "dropout", "unverified", detail=UNMEASURED) if others else None
    crossed = [answer.facts.get("crossed", ()) for scenario, answer in results.answers(drawing.role) if scenario.name == drawing.name]
    theirs = rates([*(draw[1:] for draw in drawing.draws if draw[0] == "bernoulli"), *chain.from_iterable(crossed)])
    noisy = any(draw[0] == "normal" for draw in drawing.draws)
    if "error" in measured:
        return Verdict("numeric", "dropout", "fail", detail=f"with real randomness: {measured['error']}")
    problem = "" if measured["repeatable"] else "two calls with the same random state give different results"
    # Few or small masks may all repeat by chance; they are judged only where that is negligible.
    if not problem and not measured["fresh"] and (noisy or repeats(theirs) < tolerances.FRESH_ALPHA):
        problem = "further calls draw the same numbers again"
    problem = problem or str(measured.get("stale", ""))
    ours = rates([[draw[1], draw[0]] for draw in measured["rates"]])
    if measured.get("branching"):
        # How often a branch with a mask in it is taken differs from call to call: the call is judged that takes the same ones as torch.
        answers = [answer for scenario, answer in results.answers(drawing.role) if scenario.name == drawing.name and not answer.error]
        rows = [draw[1:] for answer in answers for draw in answer.facts["draws"] if draw[0] == "bernoulli"]
        ours = rates([*rows, *chain.from_iterable(crossed)])
    if problem:
        return Verdict("numeric", "dropout", "fail", detail=problem)
    if None in theirs or None in ours:
        return Verdict("numeric", "dropout", "unverified", detail="a rate of dropout could not be read")
    wrong = theirs != ours
    return Verdict(
        "numeric",
        "dropout",
        "fail" if wrong else "pass",
        detail=f"draws by rate of keeping: {ours}" + (f" instead of {theirs}" if wrong else ""),
    )


def repeats(rates: Mapping[float | None, int]) -> float:
    """The probability that a right candidate draws the same masks in all further calls."""
    exponent = sum(count * math.log(rate**2 + (1 - rate) ** 2) for rate, count in rates.items() if rate is not None and 0 < rate < 1)
    return math.exp(max(tolerances.FRESH_CALLS * exponent, -700.0))


def rates(draws: Sequence[Sequence[object]]) -> dict[float | None, int]:
    """Elements drawn by rate of keeping, from `[shape, rate]` rows. Only the total counts: a mask may be drawn in parts."""
    totals: dict[float | None, int] = {}
    for shape, rate in draws:
        key = round(rate, budgets.RATE_DIGITS) if isinstance(rate, float) else None
        count = 1
        for size in shape if isinstance(shape, list) else []:
            count *= size
        totals[key] = totals.get(key, 0) + count
    return totals


CHECK = Check("numeric", "dropout", judge, cost=NEW_PROCESS)
