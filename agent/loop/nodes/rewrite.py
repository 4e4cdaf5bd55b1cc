"""rewrite: a draft by the rules, of the units accepted so far and the one at work."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from migrate_agent.agent.config.json_files import read, write
from migrate_agent.agent.loop import attempts
from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.drafts import draft_at
from migrate_agent.agent.loop.kernel_tests import with_tests
from migrate_agent.agent.loop.nodes.common import isolated, settle, timed
from migrate_agent.agent.model.interface import Attempt, Author
from migrate_agent.agent.runs.class_text import example_table, is_called
from migrate_agent.agent.runs.recordings import examples_of
from migrate_agent.agent.runs.state import RunState
from migrate_agent.tools.types import Draft, Hole, Span, Unit


@timed
@isolated
def rewrite(context: Context, state: RunState) -> RunState:
    """Write `draft.json`; a unit that nothing exercises is settled without one."""
    unit = context.unit(state)
    context.progress.stage(unit.id, "rewriting")
    if not examples_of(context.recording, unit.id):
        return _unexercised(context, state)
    state = {**state, "attempts": state.get("attempts", 0) + 1}
    texts = overrides(context, state)
    alone = not context.settings.rules and _author(state) == "rules"
    if alone:
        texts |= {f"{unit.source}:{unit.name.partition('.')[0]}": f"class {unit.name.partition('.')[0]}(nnx.Module):\n    pass\n"}
    draft = draft_at(context, state["position"], context.accepted(state), context.lost(state), texts)
    tests = context.unit_folder(state) / "kernels"
    draft = with_tests(draft, context.recording, context.inventory, context.original, tests, context.repository.root)
    if alone:
        draft = replace(draft, holes=(*draft.holes, _class_hole(unit)))
    write(context.unit_folder(state) / "draft.json", draft)
    _note(context, state, draft)
    taken = context.repository.conflicts(context.original, draft.files)
    if taken:
        reason = f"{taken[0]} exists already and is not as migrate-agent wrote it: move it away or rename it; it was left as it is"
        return {**settle(context, state, "failed", reason), "attempts": state["attempts"]}
    return {"outcome": "holes" if draft.holes else "ready", "attempts": state["attempts"]}


def overrides(context: Context, state: RunState) -> dict[str, str]:
    """Texts that a model proposed: those of the units before the unit at work, and its own latest ones."""
    texts, own = proposed(context, state["position"]), context.unit_folder(state) / "overrides.json"
    return texts | (read(own, dict) if own.exists() and _author(state) != "rules" else {})


def proposed(context: Context, before: int) -> dict[str, str]:
    """Texts that a model proposed of units at places before this one that are accepted, or wait to be."""
    texts: dict[str, str] = {}
    for place, done in enumerate(context.settled(before).values()):
        path = context.place_folder(place) / "overrides.json"
        if path.exists() and (done.status == "verified" or context.waits(place)):
            texts.update(read(path, dict))
    return texts


def _class_hole(unit: Unit) -> Hole:
    """The class as a hole: the rules were told to write none."""
    return Hole(unit.source, Span(unit.line, 0, unit.line, 5), "no-rules", "the whole class is to be written", "", unit.id)


def _author(state: RunState) -> Author:
    return cast(Author, state.get("proposer", "rules"))


def _note(context: Context, state: RunState, draft: Draft) -> None:
    """Keep the attempt; what another than the rules wrote may leave no hole."""
    folder, by = context.unit_folder(state), _author(state)
    if by == "rules":
        write(folder / "rules.json", draft)
        attempts.note(folder, Attempt(state["attempts"], by))
        return
    texts: dict[str, str] = read(folder / "overrides.json", dict)
    left = "; ".join(f"it leaves a hole: {hole.reason}" for hole in draft.holes[:3])
    attempts.note(folder, Attempt(state["attempts"], by, texts, state.get("name", ""), left))


def _unexercised(context: Context, state: RunState) -> RunState:
    unit = context.unit(state)
    error = context.recording.errors.get(unit.id)
    if error:
        return settle(context, state, "unverified", f"no example ran: {error}")
    if not is_called(context.original / unit.source, unit.name):
        return settle(
            context,
            state,
            "unverified",
            "no example reached it: it has no forward, and is judged as part of what derives from it or uses it",
        )
    snippet = example_table(context.original / unit.source, unit)
    return settle(context, state, "unverified", "no example reached it: add an [[example]] for it to migrate.toml", notes=(snippet,))
