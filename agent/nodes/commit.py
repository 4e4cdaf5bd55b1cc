"""commit: what was verified, on the branch, with the evidence in the message."""

from __future__ import annotations

from migrate_agent.agent.context import Context
from migrate_agent.agent.message import unit_message
from migrate_agent.agent.nodes.common import settle, timed
from migrate_agent.agent.state import RunState


@timed
def commit(context: Context, state: RunState) -> RunState:
    """Commit the draft's files. Making the commit a second time gives the same one."""
    unit, draft, evidence = context.unit(state), context.draft(state), context.evidence(state)
    context.progress.stage(unit.id, "committing")
    assert evidence is not None  # the graph comes here from verify only
    message = unit_message(unit, evidence, context.settings.base)
    number = state["commits"] + 1
    sha = context.branch.commit(state["head"], draft.files, message, number)
    return {**settle(context, state, "verified", commit=sha), "head": sha, "commits": number}
