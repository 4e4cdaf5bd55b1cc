"""fallback: a unit that cannot be rewritten runs its original through torchax, where the user asked for that."""

from __future__ import annotations

from dataclasses import replace

from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.nodes.common import Step, isolated, on_unit, timed
from migrate_agent.agent.loop.nodes.propose import use
from migrate_agent.agent.loop.torchax import wrapper_texts
from migrate_agent.agent.loop.unit_work import UnitWork
from migrate_agent.agent.runs.state import RunState
from migrate_agent.tools.rewrite import Unwrappable
from migrate_agent.tools.types import Cause

REASONS = frozenset({Cause.HOLE, Cause.DIFFERS, Cause.DEPENDENCY, Cause.TRANSLATION, Cause.BUDGET})
"""Causes after which a unit counts as one that cannot be rewritten."""


@on_unit
@timed
@isolated
def fallback(context: Context, state: RunState, work: UnitWork) -> Step:
    """Propose the wrapper that runs the original, or leave the unit as it was settled."""
    result, unit = work.result, context.unit(state)
    assert result is not None  # the graph comes here from settled units only
    asked = context.settings.fallback == "torchax" and state.get("proposer") != "torchax"
    if not asked or result.status == "verified" or result.cause not in REASONS:
        return Step({"outcome": "settled"}, work)
    try:
        texts = wrapper_texts(context, unit)
    except Unwrappable as error:
        noted = replace(result, notes=(*result.notes, f"not run through torchax: {error}"))
        return Step({"outcome": "settled"}, replace(work, result=noted))
    context.progress.stage(unit.id, "putting the original behind torchax")
    return use(work, texts, "torchax")
