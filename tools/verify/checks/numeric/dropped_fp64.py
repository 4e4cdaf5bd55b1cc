"""Outputs where dropout drops everything, and where one mask or a part of one does, agree in float64: what becomes of what is dropped."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import chain, groupby

from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.harness.common.compare_arrays import Difference, verdict
from migrate_agent.tools.harness.common.random_streams import Dropped, Mask, layouts, masks, zeroed
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.compare.pairs import draws_of, judged, output_pairs, paired, raised_error
from migrate_agent.tools.verify.contract.scenario import Answer, Role, Scenario
from migrate_agent.tools.verify.evidence.candidate import Results

Row = tuple[Scenario, Answer]
ALONE = "alone"


def judge(results: Results) -> Verdict | None:
    """Within the limit that the unit's conditioning allows. Applies where the original drops. Masks may be drawn in another order, and in another
    layout; where they are drawn in other parts, only what all of them do is compared."""
    rows = [row for row in results.answers(Role.DROPPED, Role.CONFIGURATION_DROPPED) if _compares(results, *row)]
    examples = groupby(rows, lambda row: row[0].example)
    return verdict("numeric", "dropped_fp64", chain.from_iterable(_differences(list(group)) for _, group in examples))


def _compares(results: Results, scenario: Scenario, answer: Answer) -> bool:
    return not results.forgives(scenario, answer) if answer.error else paired(scenario, answer)


def _differences(rows: Sequence[Row]) -> Iterator[Difference]:
    """The differences of one example's scenarios."""
    groups: dict[Hashable, list[Row]] = {}
    for scenario, answer in rows:
        dropped = _dropped(scenario)
        if answer.error:
            yield raised_error(scenario, answer)
        elif dropped == Dropped():
            yield from _compared(scenario, answer)
        elif _same_masks(scenario, answer, axes=dropped.axis is not None):
            groups.setdefault(_group(dropped), []).append((scenario, answer))
    for key, group in groups.items():
        masks = [dropped for dropped in zeroed(group[0][0].draws) if _group(dropped) == key]
        if len(group) == len(masks):
            yield from _matched(group)


def _group(dropped: Dropped) -> Hashable:
    """Scenarios of one group may stand for each other's places on the other side: masks that are drawn alone, axes of one length."""
    return ALONE if dropped.number is not None else (dropped.mask, dropped.axis and dropped.axis[0])


def _matched(group: Sequence[Row]) -> Iterator[Difference]:
    """Each scenario with an answer of the group that agrees, where there is one."""
    waiting = dict(enumerate(group))
    for index, (scenario, _) in enumerate(group):
        alike = [other for other, row in waiting.items() if _kind(scenario, scenario) == _kind(*row)]
        alike.sort(key=lambda other: other != index)
        agreeing = (other for other in alike if not any(leaf.failed for leaf in _compared(scenario, waiting[other][1])))
        partner = next(agreeing, alike[0] if alike else None)
        if partner is not None:
            yield from _compared(scenario, waiting.pop(partner)[1])


def _kind(scenario: Scenario, drawn: Scenario | Answer) -> Mask | None:
    """Which kind of mask is zero alone, on the side that drew."""
    number = _dropped(scenario).number
    return None if number is None else masks(draws_of(drawn))[number]


def _dropped(scenario: Scenario) -> Dropped:
    return scenario.drawing.dropped or Dropped()


def _same_masks(scenario: Scenario, answer: Answer, axes: bool) -> bool:
    """Whether both sides draw the same masks, in whatever order and layout (`axes`: with axes of the same lengths)."""
    theirs, ours = scenario.draws, answer.facts["draws"]
    return layouts(theirs) == layouts(ours) if axes else sorted(masks(theirs), key=str) == sorted(masks(ours), key=str)


def _compared(scenario: Scenario, answer: Answer) -> Iterator[Difference]:
    for pair in output_pairs(scenario, answer):
        yield judged(scenario, pair, tolerances.FLOOR_FP64)


CHECK = Check("numeric", "dropped_fp64", judge, cost=2)
