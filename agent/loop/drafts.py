"""What a draft is made of: the units whose rewrites it holds, and those that may be there as stubs only."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from migrate_agent.agent.loop.context import Context, Situation
from migrate_agent.agent.runs.recordings import examples_of
from migrate_agent.tools.types import Draft


def draft_unit(context: Context, situation: Situation) -> Draft:
    """The draft of the unit at the situation's position: with the units accepted before it, and those in a cycle with it.

    Where the units of the cycle leave holes, those of them that were not tried yet are left out if that leaves fewer.
    """
    unit = context.plan.order[situation.position]
    beside = [other for other in context.plan.cycle(unit) if other not in situation.rejected and other != unit]
    before = [other for other in situation.accepted if other not in beside]
    draft = draft_units(context, (*before, *beside, unit), situation.rejected, situation.texts)
    if not beside or not draft.holes:
        return draft
    later = [other for other in beside if context.plan.order.index(other) > situation.position]
    earlier = [other for other in beside if other not in later]
    alone = draft_units(context, (*before, *earlier, unit), (*situation.rejected, *later), situation.texts)
    return alone if len(alone.holes) < len(draft.holes) else draft


def draft_units(context: Context, units: Sequence[str], rejected: Collection[str], texts: Mapping[str, str]) -> Draft:
    """The draft of these units by the rules, with proposed texts in their places.

    Stubs stand for units that are `rejected`, and for those that are never tried.
    """
    recording, planned = context.recording, set(context.plan.order)
    stubs = tuple(unit.id for unit in context.inventory.units if unit.id not in units and (unit.id in rejected or unit.id not in planned))
    examples = [example for identifier in units for example in examples_of(recording, identifier)]
    return context.services.compose(context.inventory, recording.observations, tuple(units), texts, examples, stubs)
