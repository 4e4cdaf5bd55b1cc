"""commit: what was verified, on the branch, with the evidence in the message."""

from __future__ import annotations

from dataclasses import replace

from migrate_agent.agent.loop.commits import commit_unit
from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.nodes.common import Step, on_unit, settle, timed
from migrate_agent.agent.loop.unit_work import UnitWork
from migrate_agent.agent.runs.state import RunState
from migrate_agent.tools.types import Cause


@on_unit
@timed
def commit(context: Context, state: RunState, work: UnitWork) -> Step:
    """Commit the draft's files, and what was verified against which text. Making the commit a second time gives the same one.

    A unit in a cycle waits until all of the cycle were tried (`loop.cycles`). A fault of git is no fault of the unit: it stops the run.
    """
    unit = context.unit(state)
    assert work.evidence is not None  # the graph comes here from verify only
    cycle = context.plan.cycle(unit.id)
    others = [other for other in cycle if other != unit.id]
    if others:
        reason = f"waits for {', '.join(others)}: they name each other"
        return settle(context, state, replace(work, waits_for=cycle), "unverified", Cause.DEPENDENCY, reason)
    context.progress.stage(unit.id, "committing")
    number = state["commits"] + 1
    sha = commit_unit(context, unit, work.drafted(), work.evidence, state["head"], number)
    update, settled = settle(context, state, work, "verified", Cause.NONE, commit=sha)
    return Step({**update, "head": sha, "commits": number}, settled)
