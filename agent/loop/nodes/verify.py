"""verify: the draft as a tree of its own, judged against the base commit."""

from __future__ import annotations

from dataclasses import replace

from migrate_agent.agent.loop.attempts import breaks_a_method
from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.dependencies import blocking, why
from migrate_agent.agent.loop.nodes.common import Step, isolated, on_unit, settle, timed
from migrate_agent.agent.loop.unit_work import UnitWork
from migrate_agent.agent.loop.unreached import as_committed, earlier_reaches
from migrate_agent.agent.runs.state import RunState
from migrate_agent.tools.rewrite import Untranslatable
from migrate_agent.tools.types import Cause, Evidence


@on_unit
@timed
@isolated
def verify(context: Context, state: RunState, work: UnitWork) -> Step:
    """Get the evidence. A unit passes where every verdict does, and all that it needs was verified before it."""
    unit = context.unit(state)

    def tell(text: str) -> None:
        context.progress.stage(unit.id, f"verifying: {text}")

    try:
        evidence = context.verifier.verify(context, context.situation(state, work), work.drafted(), work.folder, tell)
    except Untranslatable as error:
        return settle(context, state, work, "unverified", Cause.TRANSLATION, f"its example cannot be put in the mirror's names: {error}")
    return _outcome(context, state, work.with_evidence(state["attempts"], evidence), evidence)


def _outcome(context: Context, state: RunState, work: UnitWork, evidence: Evidence) -> Step:
    if evidence.status == "failed":
        return Step({"outcome": "failed"}, work)
    if evidence.status == "unverified":
        return settle(context, state, work, "unverified", Cause.UNDECIDED, why(evidence))
    if state.get("proposer") == "repair" and breaks_a_method(work.attempts, evidence):
        return Step({"outcome": "failed"}, work)  # safe: it passes by a method that it broke
    blocked = blocking(context, state["position"], work.drafted())
    if blocked:
        return settle(context, state, work, "unverified", Cause.DEPENDENCY, blocked)
    return Step({"outcome": "passed"}, _with_stubs(context, state["position"], work, evidence))


def _with_stubs(context: Context, position: int, work: UnitWork, evidence: Evidence) -> UnitWork:
    """The work with the draft as it is committed: of a cycle, that is known once all of it was verified."""
    if evidence.reach is None or context.plan.cycle(context.plan.order[position]):
        return work
    reaches = (*earlier_reaches(context, position).values(), evidence.reach)
    return replace(work, draft=as_committed(context, work.drafted(), reaches))
