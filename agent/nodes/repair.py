"""repair: show the model why the verifier refused. Without one, the unit has failed, with its evidence."""

from __future__ import annotations

from migrate_agent.agent.context import Context
from migrate_agent.agent.nodes.common import isolated, settle, timed
from migrate_agent.agent.nodes.fill import ATTEMPTS, request, take_up
from migrate_agent.agent.nodes.verify import why
from migrate_agent.agent.state import RunState


@timed
@isolated
def repair(context: Context, state: RunState) -> RunState:
    """Take up the model's texts, or settle the unit as failed."""
    evidence = context.evidence(state)
    reason = why(evidence) if evidence else ""
    if context.model is None or state["attempts"] >= ATTEMPTS:
        return settle(context, state, "failed", reason)
    context.progress.stage(context.unit(state).id, "asking the model to repair")
    return take_up(context, state, context.model.repair(request(context, state)), "failed", reason)
