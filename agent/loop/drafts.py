"""What a draft is made of: the units whose rewrites it holds, and those that may be there as stubs only."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from migrate_agent.agent.runs.recordings import examples_of
from migrate_agent.tools.types import Draft

if TYPE_CHECKING:
    from migrate_agent.agent.loop.context import Context


def draft_at(context: Context, place: int, accepted: Sequence[str], lost: Collection[str], texts: Mapping[str, str]) -> Draft:
    """The draft of the unit at a place of the plan, on what was accepted before it, and with the units in a circle with it that are not `lost`.

    Where those leave holes, they are left out as far as they were not tried yet.
    """
    unit = context.plan.order[place]
    beside = [other for other in context.plan.circle(unit) if other not in lost and other != unit]
    before = [other for other in accepted if other not in beside]
    draft = drafted(context, (*before, *beside, unit), lost, texts)
    if not beside or not draft.holes:
        return draft
    untried = [other for other in beside if context.plan.order.index(other) > place]
    tried = [other for other in beside if other not in untried]
    alone = drafted(context, (*before, *tried, unit), (*lost, *untried), texts)
    return alone if len(alone.holes) < len(draft.holes) else draft


def drafted(context: Context, units: Sequence[str], lost: Collection[str], texts: Mapping[str, str]) -> Draft:
    """The draft of these units by the rules, with a model's texts in their places.

    Stubs stand for units that are `lost` (tried, and not verified), and for those that are never tried.
    """
    recording, tried = context.recording, set(context.plan.order)
    refused = tuple(each.id for each in context.inventory.units if each.id not in units and (each.id in lost or each.id not in tried))
    examples = [example for identifier in units for example in examples_of(recording, identifier)]
    return context.services.compose(context.inventory, recording.observations, tuple(units), texts, examples, refused)
