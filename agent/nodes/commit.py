"""commit: what was verified, on the branch, with the evidence in the message."""

from __future__ import annotations

from migrate_agent.agent.context import Context
from migrate_agent.agent.message import unit_message
from migrate_agent.agent.nodes.common import settle, timed
from migrate_agent.agent.recordings import examples_of
from migrate_agent.agent.state import RunState
from migrate_agent.agent.verified import Present, place, verified
from migrate_agent.tools.types import Draft, Evidence, Unit


@timed
def commit(context: Context, state: RunState) -> RunState:
    """Commit the draft's files, and what was verified against which text. Making the commit a second time gives the same one."""
    unit, draft, evidence = context.unit(state), context.draft(state), context.evidence(state)
    context.progress.stage(unit.id, "committing")
    assert evidence is not None  # the graph comes here from verify only
    message = unit_message(unit, evidence, context.settings.base)
    number = state["commits"] + 1
    files = {**draft.files, place(unit.source, unit.name): record_of(context, unit, draft, evidence)}
    sha = context.branch.commit(state["head"], files, message, number)
    return {**settle(context, state, "verified", commit=sha), "head": sha, "commits": number}


def record_of(context: Context, unit: Unit, draft: Draft, evidence: Evidence) -> str:
    """The text of the unit's file under `.migrate/verified/`."""
    examples = context.services.examples(context.inventory, context.config)
    origin = next((example.origin for example in examples_of(context.recording, unit.id)), "")
    return verified(Present(context.inventory, examples, draft.files), unit, evidence, origin).text()
