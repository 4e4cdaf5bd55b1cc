"""advance: tell how the unit at work ended, and take up the next one."""

from __future__ import annotations

from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.cycles import conclude
from migrate_agent.agent.runs.state import RunState


def advance(context: Context, state: RunState) -> RunState:
    """Move to the next place of the plan; its counters start from zero."""
    done, place = state["position"], state["position"] + 1
    made = conclude(context, state) if done >= 0 else {}
    if done >= 0:
        context.progress.unit(place, context.settled(place)[context.plan.order[done]])
    more = place < len(context.plan.order)
    return {
        **made,
        "position": place,
        "outcome": "more" if more else "done",
        "attempts": 0,
        "calls": 0,
        "input_tokens": 0,
        "output_tokens": 0,
        "cost": 0.0,
        "model_seconds": 0.0,
        "proposer": "rules",
        "name": "",
        "granted": 0,
        "seconds": 0.0,
    }
