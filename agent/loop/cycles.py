"""Units whose rewrites name each other: each is verified with the others beside it, and those that hold together are committed together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from migrate_agent.agent.loop.commits import commit_unit
from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.dependencies import blocking, why
from migrate_agent.agent.loop.drafts import draft_units
from migrate_agent.agent.loop.judging import verify_draft
from migrate_agent.agent.loop.unit_work import UnitWork, load_work
from migrate_agent.agent.loop.unreached import as_committed, earlier_reaches, figures
from migrate_agent.agent.runs.state import RunState
from migrate_agent.tools.types import Cause, Draft, Evidence, Status


def conclude_cycle(context: Context, state: RunState) -> RunState:
    """Commit what waits in the cycle whose last unit was at work, on one draft of all of it. Elsewhere this does nothing.

    Where a unit of the cycle is rejected after others passed beside it, the others are verified again without it, until all that are left
    hold together. Doing this again after a kill makes the same commits.
    """
    last = state["position"]
    cycle = context.plan.cycle(context.plan.order[last])
    if not cycle or cycle[-1] != context.plan.order[last]:
        return {}
    positions = {name: position for position, name in enumerate(context.plan.order) if name in cycle and context.waits(position)}
    works = {name: load_work(context.unit_folder(position), 0) for name, position in positions.items()}
    before = tuple(name for name in context.accepted(last) if name not in cycle)
    while positions:
        draft = draft_units(context, (*before, *positions), context.rejected(last + 1), context.texts(last + 1))
        works = {name: _verified_beside(context, position, works[name], draft) for name, position in positions.items()}
        reasons = {name: _reason_against(context, position, draft, _evidence(works[name])) for name, position in positions.items()}
        if not any(reasons.values()):
            return _commit(context, state, draft, positions, works)
        for name, reason in reasons.items():
            if reason:
                after = replace(works[name], waits_for=())
                _conclude_unit(context, positions.pop(name), works[name], after, "unverified", reason)
    return {}


def _verified_beside(context: Context, position: int, work: UnitWork, draft: Draft) -> UnitWork:
    """The work with the evidence on this draft. A unit whose evidence is on another draft is verified again."""
    if work.drafted().files == draft.files:
        return work
    unit = context.unit_at(position)
    context.progress.stage(unit.id, "verifying it again, with what is left of its cycle")
    evidence = verify_draft(context, unit, draft, work.folder, lambda text: context.progress.stage(unit.id, f"verifying: {text}"))
    after = replace(work, evidence=evidence, draft=draft)
    context.save(position, work, after)  # now, not at the end: a verification takes minutes, and a kill should not cost it
    return after


def _reason_against(context: Context, position: int, draft: Draft, evidence: Evidence) -> str:
    """Why the unit at a position of the plan does not hold; "" where it does."""
    blocked = blocking(context, position, draft, evidence)
    if draft.holes:
        return f"a hole in its cycle is left: {draft.holes[0].reason}"
    return blocked or ("" if evidence.status == "verified" else why(evidence))


def _commit(context: Context, state: RunState, draft: Draft, positions: Mapping[str, int], works: Mapping[str, UnitWork]) -> RunState:
    head, number = state["head"], state["commits"]
    reaches = [reach for work in works.values() if work.evidence is not None and (reach := work.evidence.reach) is not None]
    draft = as_committed(context, draft, (*earlier_reaches(context, min(positions.values())).values(), *reaches))
    for name, position in positions.items():
        number += 1
        head = commit_unit(context, context.unit_at(position), draft, _evidence(works[name]), head, number)
        _conclude_unit(context, position, works[name], replace(works[name], draft=draft), "verified", commit=head)
        context.progress.unit(position + 1, context.settled(position + 1)[name])
    return {"head": head, "commits": number}


def _conclude_unit(
    context: Context, position: int, before: UnitWork, after: UnitWork, status: Status, reason: str = "", commit: str = ""
) -> None:
    """Write how a unit ended whose result said that it waits."""
    evidence, draft = _evidence(after), after.drafted()
    waited = context.settled(position + 1)[context.plan.order[position]]
    result = replace(
        waited,
        status=status,
        cause=Cause.DEPENDENCY if reason else Cause.NONE,
        reason=reason,
        commit=commit,
        notes=(*draft.notes, *evidence.notes),
        verdicts=evidence.verdicts,
        figures=evidence.figures,
        reach=figures(evidence.reach, keep=context.config.run.keep_unreached),
    )
    context.save(position, before, replace(after, result=result))


def _evidence(work: UnitWork) -> Evidence:
    if work.evidence is None:
        raise LookupError(f"{work.folder.name} waits for its cycle and has no evidence")
    return work.evidence
