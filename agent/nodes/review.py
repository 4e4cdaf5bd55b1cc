"""review: in a session at a terminal the user has the last word on what the verifier accepted."""

from __future__ import annotations

from langgraph.types import interrupt

from migrate_agent.agent.context import Context
from migrate_agent.agent.nodes.common import settle
from migrate_agent.agent.state import RunState

ANSWERS = ("accept", "skip")


def review(context: Context, state: RunState) -> RunState:
    """Ask by `interrupt`, resumed with one of `ANSWERS`; without a session, accept."""
    if not context.settings.interactive:
        return {"outcome": "accepted"}
    answer = interrupt({"position": state["position"], "unit": context.unit(state).id})
    if answer == "accept":
        return {"outcome": "accepted"}
    return settle(context, state, "skipped", "verified, but not accepted in the review")
