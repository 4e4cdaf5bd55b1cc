"""advance: tell how the unit at work ended, and take up the next one."""

from __future__ import annotations

from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.cycles import conclude_cycle
from migrate_agent.agent.runs.state import RunState


def advance(context: Context, state: RunState) -> RunState:
    """Move to the next position of the plan. Its counters start from zero."""
    last, position = state["position"], state["position"] + 1
    commits = conclude_cycle(context, state) if last >= 0 else {}
    if last >= 0:
        context.progress.unit(position, context.settled(position)[context.plan.order[last]])
    more = position < len(context.plan.order)
    return {
        **commits,
        "position": position,
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
