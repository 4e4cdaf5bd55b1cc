"""Units whose rewrites name each other: each is verified with the others beside it, and those that hold together are committed together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from migrate_agent.agent.config.json_files import read, write
from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.dependencies import blocking, why
from migrate_agent.agent.loop.drafts import drafted
from migrate_agent.agent.loop.judging import judge
from migrate_agent.agent.loop.nodes.commit import committed
from migrate_agent.agent.loop.nodes.rewrite import proposed
from migrate_agent.agent.runs.state import RunState
from migrate_agent.tools.types import Draft, Evidence, Status


def conclude(context: Context, state: RunState) -> RunState:
    """Commit what waits in the circle whose last unit was at work, on one draft of all of it; nothing elsewhere.

    Where one of the circle was lost after others had passed beside it, the others are verified again without it, until all that are left hold
    together. Doing this again after a crash makes the same commits.
    """
    place = state["position"]
    circle = context.plan.circle(context.plan.order[place])
    if not circle or circle[-1] != context.plan.order[place]:
        return {}
    places = {name: each for each, name in enumerate(context.plan.order) if name in circle and context.waits(each)}
    accepted = [name for name in context.accepted({"position": place}) if name not in circle]
    while places:
        draft = drafted(context, (*accepted, *places), context.lost({"position": place + 1}), proposed(context, place + 1))
        found = {name: _again(context, each, draft) for name, each in places.items()}
        wrong = {name: reason for name, each in places.items() if (reason := _wrong(context, each, draft, found[name]))}
        if not wrong:
            return _commit(context, state, draft, places, found)
        for name, reason in wrong.items():
            at = places.pop(name)
            context.wait(at, False)
            _note(context, at, draft, found[name], "unverified", reason)
    return {}


def _again(context: Context, place: int, draft: Draft) -> Evidence:
    """What is known of the unit at a place by this draft: where another draft was judged, it is judged anew."""
    folder = context.place_folder(place)
    if read(folder / "draft.json", Draft).files != draft.files:
        unit = context.inventory.unit(context.plan.order[place])
        context.progress.stage(unit.id, "verifying it again, with what is left of its circle")
        write(
            folder / "evidence.json",
            judge(context, unit, draft, folder, lambda text: context.progress.stage(unit.id, f"verifying: {text}")),
        )
        write(folder / "draft.json", draft)
    return read(folder / "evidence.json", Evidence)


def _wrong(context: Context, place: int, draft: Draft, evidence: Evidence) -> str:
    """Why the unit at a place does not hold, "" where it does."""
    blocked = blocking(context, place, draft, evidence)
    if draft.holes:
        return f"a hole in its circle is left: {draft.holes[0].reason}"
    return blocked or ("" if evidence.status == "verified" else why(evidence))


def _commit(context: Context, state: RunState, draft: Draft, places: Mapping[str, int], found: Mapping[str, Evidence]) -> RunState:
    head, number = state["head"], state["commits"]
    for name, place in places.items():
        number += 1
        head = committed(context, context.inventory.unit(name), draft, found[name], head, number)
        _note(context, place, draft, found[name], "verified", commit=head)
        context.progress.unit(place + 1, context.settled(place + 1)[name])
    return {"head": head, "commits": number}


def _note(context: Context, place: int, draft: Draft, evidence: Evidence, status: Status, reason: str = "", commit: str = "") -> None:
    """Note how the unit at a place ended, which was said to wait."""
    before = context.settled(place + 1)[context.plan.order[place]]
    told = replace(before, status=status, reason=reason, commit=commit, notes=(*draft.notes, *evidence.notes))
    context.resettle(place, replace(told, verdicts=evidence.verdicts, figures=evidence.figures))
