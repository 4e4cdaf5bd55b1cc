"""commit: what was verified, on the branch, with the evidence in the message."""

from __future__ import annotations

from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.nodes.common import settle, timed
from migrate_agent.agent.loop.verified_units import Present, place, verified
from migrate_agent.agent.runs.commit_message import unit_message
from migrate_agent.agent.runs.recordings import examples_of
from migrate_agent.agent.runs.state import RunState
from migrate_agent.tools.types import Draft, Evidence, Unit


@timed
def commit(context: Context, state: RunState) -> RunState:
    """Commit the draft's files, and what was verified against which text. Making the commit a second time gives the same one.

    A unit in a circle waits until all of the circle were tried (`agent.circles`).
    """
    unit, evidence = context.unit(state), context.evidence(state)
    assert evidence is not None  # the graph comes here from verify only
    others = [other for other in context.plan.circle(unit.id) if other != unit.id]
    if others:
        context.wait(state["position"], True)
        return settle(context, state, "unverified", f"waits for {', '.join(others)}: they name each other")
    context.progress.stage(unit.id, "committing")
    number = state["commits"] + 1
    sha = committed(context, unit, context.draft(state), evidence, state["head"], number)
    return {**settle(context, state, "verified", commit=sha), "head": sha, "commits": number}


def committed(context: Context, unit: Unit, draft: Draft, evidence: Evidence, head: str, number: int) -> str:
    """Make the commit of a unit on another one; gives its id."""
    files = {**draft.files, place(unit.source, unit.name): record_of(context, unit, draft, evidence)}
    return context.branch.commit(head, files, unit_message(unit, evidence, context.settings.base), number)


def record_of(context: Context, unit: Unit, draft: Draft, evidence: Evidence) -> str:
    """The text of the unit's file under `.migrate/verified/`."""
    examples = context.services.examples(context.inventory, context.config)
    origin = next((example.origin for example in examples_of(context.recording, unit.id)), "")
    return verified(Present(context.inventory, examples, draft.files), unit, evidence, origin).text()
