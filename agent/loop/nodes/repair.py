"""repair: known causes first, by rules and without tokens; then the model is shown why the verifier refused. Else the unit has failed."""

from __future__ import annotations

from migrate_agent.agent.loop.attempts import attempt_with_same_code, best_evidence, count_by
from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.dependencies import blocking, why
from migrate_agent.agent.loop.nodes.common import Step, isolated, on_unit, settle, timed
from migrate_agent.agent.loop.nodes.propose import propose, use
from migrate_agent.agent.loop.unit_work import UnitWork
from migrate_agent.agent.model import known_repairs
from migrate_agent.agent.model.numbered_holes import statement_text
from migrate_agent.agent.runs.state import RunState
from migrate_agent.tools.types import Cause, Unit

KNOWN_REPAIRS = 6
"""Deterministic repairs of one unit that are verified, at most."""


@on_unit
@timed
@isolated
def repair(context: Context, state: RunState, work: UnitWork) -> Step:
    """Take up a repair, or settle the unit: as blocked where what it needs is not verified, else as failed."""
    best = best_evidence(work.attempts) or work.evidence
    reason = why(best) if best else ""
    blocked = blocking(context, state["position"], work.drafted(), work.evidence)
    if blocked:
        return settle(context, state, work, "unverified", Cause.DEPENDENCY, f"{blocked}; {reason}")
    if state.get("proposer") in ("human", "torchax") and work.evidence and work.evidence.status == "failed":
        return settle(context, state, work, "failed", Cause.DIFFERS, reason)  # whoever wrote it decides what comes next
    # A retry in a session asks for the model, so known repairs are left out then.
    step = None if state.get("granted", 0) else _known_repair(context, work, context.unit(state))
    if step:
        return step
    if context.model is None:
        return settle(context, state, work, "failed", Cause.DIFFERS, reason)
    context.progress.stage(context.unit(state).id, "asking the model to repair")
    return propose(context, state, work, context.model.repair, "failed", reason)


def _known_repair(context: Context, work: UnitWork, unit: Unit) -> Step | None:
    """The next deterministic repair of the latest proposal that was not tried yet."""
    if work.evidence is None or work.rules is None or count_by(work.attempts, "repair") >= KNOWN_REPAIRS:
        return None
    latest = next((attempt for attempt in reversed(work.attempts) if attempt.by != "repair" and attempt.evidence is not None), None)
    if latest is None or latest.evidence is None:
        return None
    owner = f"{unit.source}:{unit.name.partition('.')[0]}"
    text = latest.texts.get(owner) or statement_text(work.rules, context.inventory, owner)
    source = (context.original / unit.source).read_text(encoding="utf-8-sig")
    for name, repaired in known_repairs.repairs(text, source, latest.evidence):
        texts = {**latest.texts, owner: repaired}
        if attempt_with_same_code(work.attempts, texts) is None:
            context.progress.stage(unit.id, f"trying a known repair: {name}")
            return use(work, texts, "repair", name)
    return None
