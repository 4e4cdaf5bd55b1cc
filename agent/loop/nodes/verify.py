"""verify: the draft as a tree of its own, judged against the base commit."""

from __future__ import annotations

from migrate_agent.agent.config.json_files import write
from migrate_agent.agent.loop.attempts import judged
from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.dependencies import blocking, why
from migrate_agent.agent.loop.nodes.common import isolated, settle, timed
from migrate_agent.agent.loop.nodes.rewrite import overrides
from migrate_agent.agent.loop.speculation import Situation
from migrate_agent.agent.runs.state import RunState
from migrate_agent.tools.rewrite import Untranslatable
from migrate_agent.tools.types import Evidence


@timed
@isolated
def verify(context: Context, state: RunState) -> RunState:
    """Write `evidence.json`. A unit passes where every verdict does, and all that it needs was verified before it."""
    unit, folder = context.unit(state), context.unit_folder(state)
    now = situation(context, state)

    def tell(text: str) -> None:
        context.progress.stage(unit.id, f"verifying: {text}")

    try:
        evidence = context.ahead.judge(context, now, context.draft(state), folder, tell)
    except Untranslatable as error:
        return settle(context, state, "unverified", f"its example cannot be put in the mirror's names: {error}")
    write(folder / "evidence.json", evidence)
    judged(folder, state["attempts"], evidence)
    return _outcome(context, state, evidence)


def situation(context: Context, state: RunState) -> Situation:
    """Where the run is, for who looks ahead."""
    return Situation(state["position"], tuple(context.accepted(state)), tuple(context.lost(state)), overrides(context, state))


def _outcome(context: Context, state: RunState, evidence: Evidence) -> RunState:
    if evidence.status == "failed":
        return {"outcome": "failed"}
    if evidence.status == "unverified":
        return settle(context, state, "unverified", why(evidence))
    blocked = blocking(context, state["position"], context.draft(state))
    return settle(context, state, "unverified", blocked) if blocked else {"outcome": "passed"}
