"""repair: known causes first, by rules and without tokens; then the model is shown why the verifier refused. Else the unit has failed."""

from __future__ import annotations

from migrate_agent.agent.loop import attempts
from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.dependencies import blocking, why
from migrate_agent.agent.loop.nodes.common import isolated, settle, timed
from migrate_agent.agent.loop.nodes.propose import propose, use
from migrate_agent.agent.model import known_repairs
from migrate_agent.agent.model.numbered_holes import statement_text
from migrate_agent.agent.runs.state import RunState

MENDS = 6
"""Deterministic repairs of one unit that are verified, at most."""


@timed
@isolated
def repair(context: Context, state: RunState) -> RunState:
    """Take up a repair, or settle the unit: as blocked where what it needs is not verified, else as failed."""
    evidence = context.evidence(state)
    told = attempts.best(attempts.history(context.unit_folder(state), state["attempts"])) or evidence
    reason = why(told) if told else ""
    blocked = blocking(context, state["position"], context.draft(state), evidence)
    if blocked:
        return settle(context, state, "unverified", f"{blocked}; {reason}")
    if state.get("proposer") == "human" and evidence and evidence.status == "failed":
        return settle(context, state, "failed", reason)  # whoever wrote it decides what comes next
    mended = None if state.get("granted", 0) else _mended(context, state)  # the user asked for the model
    if mended:
        return mended
    if context.model is None:
        return settle(context, state, "failed", reason)
    context.progress.stage(context.unit(state).id, "asking the model to repair")
    return propose(context, state, context.model.repair, "failed", reason)


def _mended(context: Context, state: RunState) -> RunState | None:
    """The next deterministic repair of the latest proposal that was not tried yet."""
    unit, folder, evidence = context.unit(state), context.unit_folder(state), context.evidence(state)
    made = attempts.history(folder, state["attempts"])
    if evidence is None or attempts.count(made, "repair") >= MENDS:
        return None
    latest = next((attempt for attempt in reversed(made) if attempt.by != "repair" and attempt.evidence is not None), None)
    if latest is None or latest.evidence is None:
        return None
    owner = f"{unit.source}:{unit.name.partition('.')[0]}"
    text = latest.texts.get(owner) or statement_text(context.rules(state), context.inventory, owner)
    source = (context.original / unit.source).read_text(encoding="utf-8")
    for name, mended in known_repairs.repairs(text, source, latest.evidence):
        texts = {**latest.texts, owner: mended}
        if attempts.same_as(made, texts) is None:
            context.progress.stage(unit.id, f"trying a known repair: {name}")
            return use(context, state, texts, "repair", name)
    return None
