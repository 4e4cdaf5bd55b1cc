"""rewrite: a draft by the rules, of the units accepted so far and the one at work."""

from __future__ import annotations

from dataclasses import replace
from textwrap import shorten
from typing import cast

from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.drafts import draft_unit
from migrate_agent.agent.loop.kernel_tests import with_tests
from migrate_agent.agent.loop.nodes.common import Step, isolated, on_unit, settle, timed
from migrate_agent.agent.loop.torchax import asked_for, wrapper_texts
from migrate_agent.agent.loop.unit_work import UnitWork
from migrate_agent.agent.model.interface import Attempt, Proposer
from migrate_agent.agent.runs.class_text import example_table, is_called, is_interface
from migrate_agent.agent.runs.recordings import examples_of
from migrate_agent.agent.runs.state import RunState
from migrate_agent.tools.rewrite import Unwrappable
from migrate_agent.tools.scan.unreadable import unreadable_below
from migrate_agent.tools.types import Cause, Draft, Hole, Span, Unit


@on_unit
@timed
@isolated
def rewrite(context: Context, state: RunState, work: UnitWork) -> Step:
    """Make the next draft. A unit that nothing exercises is settled without one."""
    unit = context.unit(state)
    context.progress.stage(unit.id, "rewriting")
    if not examples_of(context.recording, unit.id):
        return _settle_unexercised(context, state, work)
    state = {**state, "attempts": state.get("attempts", 0) + 1}
    try:
        state, work = _behind_torchax(context, state, work)
    except Unwrappable as error:
        return settle(context, state, work, "unverified", Cause.HOLE, f"it cannot run through torchax: {error}")
    draft = _draft(context, state, work)
    work = _with_draft(state, work, draft)
    conflicts = context.repository.conflicts(context.original, draft.files)
    if conflicts:
        reason = f"{conflicts[0]} exists already and is not as migrate-agent wrote it: move it away or rename it; it was left as it is"
        update, settled = settle(context, state, work, "failed", Cause.FILE_TAKEN, reason)
        return Step({**update, "attempts": state["attempts"]}, settled)
    outcome = "holes" if draft.holes else "ready"
    return Step({"outcome": outcome, "attempts": state["attempts"], "proposer": _proposer(state)}, work)


def _behind_torchax(context: Context, state: RunState, work: UnitWork) -> tuple[RunState, UnitWork]:
    """The state and work with the wrapper as the first proposal, of a unit that the configuration wants run through torchax.

    Raises `Unwrappable`.
    """
    unit = context.unit(state)
    if _proposer(state) != "rules" or not asked_for(context.config, unit.id):
        return state, work
    return {**state, "proposer": "torchax"}, replace(work, texts=wrapper_texts(context, unit))


def _draft(context: Context, state: RunState, work: UnitWork) -> Draft:
    """The draft of the unit at work, with the tests of holes that kernels left. With `--no-rules`, the whole class is a hole at first."""
    unit, situation = context.unit(state), context.situation(state, work)
    empty = not context.settings.rules and _proposer(state) == "rules"
    if empty:
        name = unit.name.partition(".")[0]
        text = f"class {name}(nnx.Module):\n    pass\n"
        situation = replace(situation, texts={**situation.texts, f"{unit.source}:{name}": text})
    draft = draft_unit(context, situation)
    tests = work.folder / "kernels"
    draft = with_tests(draft, context.recording, context.inventory, context.original, tests, context.repository.root)
    return replace(draft, holes=(*draft.holes, _class_hole(unit))) if empty else draft


def _class_hole(unit: Unit) -> Hole:
    """The class as a hole: the rules were told to write none."""
    return Hole(unit.source, Span(unit.line, 0, unit.line, 5), "no-rules", "the whole class is to be written", "", unit.id)


def _proposer(state: RunState) -> Proposer:
    return cast(Proposer, state.get("proposer", "rules"))


def _with_draft(state: RunState, work: UnitWork, draft: Draft) -> UnitWork:
    """The work with the draft and its attempt. A proposal of another than the rules may leave no hole."""
    proposer = _proposer(state)
    if proposer == "rules":
        return replace(work, draft=draft, rules=draft).with_attempt(Attempt(state["attempts"], proposer))
    refused = "; ".join(f"it leaves a hole: {hole.reason}" for hole in draft.holes[:3])
    attempt = Attempt(state["attempts"], proposer, work.texts or {}, state.get("name", ""), refused)
    return replace(work, draft=draft).with_attempt(attempt)


def _settle_unexercised(context: Context, state: RunState, work: UnitWork) -> Step:
    unit = context.unit(state)
    error = context.recording.errors.get(unit.id)
    if error:
        broken = "".join(f"; it imports {file.path}, {file.error}" for file in unreadable_below(context.inventory, unit.source))
        return settle(context, state, work, "unverified", Cause.EXAMPLE_FAILED, f"no example ran: {error}{broken}")
    if inside := context.recording.inside.get(unit.id):
        reason = f"no example runs it alone, since {inside}: it is judged as part of what constructs it"
        return settle(context, state, work, "unverified", Cause.NO_EXAMPLE, reason)
    guess = context.plan.guesses.get(unit.id)
    source = context.original / unit.source
    if is_interface(source, unit.name) or ((guess is None or not guess.is_tried) and not is_called(source, unit.name)):
        reason = "no example reached it: it has no forward of its own, and is judged as part of what derives from it or uses it"
        return settle(context, state, work, "unverified", Cause.NO_EXAMPLE, reason)
    snippet = example_table(context.original / unit.source, unit, guess)
    what = "the guess that came furthest" if guess and guess.is_tried else "the search for one"
    ended = f"; {what} ended with {shorten(guess.error, 200)}" if guess else ""
    reason = f"no example reached it: add an [[example]] for it to migrate.toml{ended}"
    return settle(context, state, work, "unverified", Cause.NO_EXAMPLE, reason, notes=(snippet,), example=snippet)
