"""Outputs where dropout drops everything, and where one of its masks does, agree in float64: what becomes of what is dropped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, groupby

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify import limits
from migrate_agent.tools.verify.check import Check
from migrate_agent.tools.verify.compare import Difference, verdict
from migrate_agent.tools.verify.expected import Scenario
from migrate_agent.tools.verify.pairing import difference, output_pairs, paired
from migrate_agent.tools.verify.results import Answer, Results
from migrate_agent.tools.verify.streams import Drawing, Dropped, masks

Row = tuple[Scenario, Answer]


def judge(results: Results) -> Verdict | None:
    """Within the limit that the unit's conditioning allows. Applies where the original drops. Masks may be drawn in another order, and in another
    layout; where they are drawn in other parts, only what all of them do is compared."""
    rows = [row for row in results.answers("dropped") if row[1].error or paired(*row)]
    examples = groupby(rows, lambda row: row[0].facts["example"])
    return verdict("numeric", "dropped_fp64", chain.from_iterable(_differences(list(found)) for _, found in examples))


def _differences(rows: Sequence[Row]) -> Iterator[Difference]:
    """Of one example."""
    alone: dict[int, Row] = {}
    for scenario, answer in rows:
        dropped = _dropped(scenario)
        if answer.error:
            yield Difference(scenario.name, float("inf"), 0.0, answer.error)
        elif dropped == Dropped() or (dropped.number is None and _same_masks(scenario, answer)):
            yield from _compared(scenario, answer)
        elif dropped.number is not None and _same_masks(scenario, answer):
            alone[dropped.number] = scenario, answer
    waiting = {number: answer for number, (_, answer) in alone.items()}
    for number, (scenario, _) in alone.items() if all(len(masks(row[0].facts["draws"])) == len(alone) for row in rows) else ():
        kind = masks(scenario.facts["draws"])[number]
        alike = [place for place, answer in waiting.items() if masks(answer.facts["draws"])[place] == kind]
        alike.sort(key=lambda place: place != number)
        agreeing = (place for place in alike if not any(found.failed for found in _compared(scenario, waiting[place])))
        place = next(agreeing, alike[0] if alike else None)
        if place is not None:
            yield from _compared(scenario, waiting.pop(place))


def _dropped(scenario: Scenario) -> Dropped:
    return Drawing.of(scenario.facts["drawing"]).dropped or Dropped()


def _same_masks(scenario: Scenario, answer: Answer) -> bool:
    """Whether both sides draw the same masks, in whatever order."""
    return sorted(map(str, masks(scenario.facts["draws"]))) == sorted(map(str, masks(answer.facts["draws"])))


def _compared(scenario: Scenario, answer: Answer) -> Iterator[Difference]:
    for pair in output_pairs(scenario, answer):
        yield difference(scenario, pair, limits.FLOOR_FP64)


CHECK = Check("numeric", "dropped_fp64", judge, cost=2)
