"""fill: ask the model for what the rules left open. Without one, the holes are the reason why the unit is not verified."""

from __future__ import annotations

from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.dependencies import blocking
from migrate_agent.agent.loop.nodes.common import Step, isolated, on_unit, settle, timed
from migrate_agent.agent.loop.nodes.propose import propose
from migrate_agent.agent.loop.unit_work import UnitWork
from migrate_agent.agent.runs.state import RunState
from migrate_agent.tools.types import Cause, Hole


@on_unit
@timed
@isolated
def fill(context: Context, state: RunState, work: UnitWork) -> Step:
    """Take up the model's texts, or settle the unit with its holes. A unit that needs one that failed costs no call."""
    holes = work.drafted().holes
    if state.get("proposer") in ("human", "torchax"):
        return settle(context, state, work, "unverified", Cause.HOLE, describe(holes), holes=holes)
    if context.model is None:
        return settle(context, state, work, "unverified", Cause.HOLE, f"{describe(holes)}; a language model could fill them", holes=holes)
    blocked = blocking(context, state["position"], work.drafted())
    if blocked:
        return settle(context, state, work, "unverified", Cause.DEPENDENCY, f"{blocked}; {describe(holes)}", holes=holes)
    context.verifier.look_ahead(context, context.situation(state, work))
    context.progress.stage(context.unit(state).id, f"asking the model to fill {len(holes)} holes")
    return propose(context, state, work, context.model.fill, "unverified", describe(holes))


def describe(holes: tuple[Hole, ...], most: int = 3) -> str:
    """`2 holes: model.py:12: … ; …`, the first ones spelt out."""
    shown = "; ".join(f"{hole.source}:{hole.span.line}: {hole.reason}" for hole in holes[:most])
    more = f"; and {len(holes) - most} more" if len(holes) > most else ""
    return f"{len(holes)} hole{'s' if len(holes) > 1 else ''}: {shown}{more}"
