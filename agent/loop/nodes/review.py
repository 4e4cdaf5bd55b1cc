"""review: in a session at a terminal the user decides whether to accept what was verified, and what to do about the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from langgraph.types import interrupt

from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.nodes.common import Step, on_unit, settle
from migrate_agent.agent.loop.nodes.propose import counted, request, use
from migrate_agent.agent.loop.unit_work import UnitWork, load_work
from migrate_agent.agent.model.numbered_holes import statement_text
from migrate_agent.agent.runs.state import RunState
from migrate_agent.tools.types import Cause

ACTIONS = ("accept", "skip", "edit", "retry", "ask", "undo")
"""What `interrupt` is resumed with: one of these, or a mapping with it as `action` and the `text` that belongs to it."""


@on_unit
def review(context: Context, state: RunState, work: UnitWork) -> Step:
    """Ask by `interrupt`; without a session, accept what passed and leave the rest.

    LangGraph ends the node at `interrupt`, and does it again from its start when there is an answer. So nothing is changed before that line.
    """
    standing = state["outcome"] if state["outcome"] in ("passed", "settled") else state["standing"]
    passed = standing == "passed"
    if not context.settings.interactive or not (passed or has_draft(state, work)):
        return Step({"outcome": "accepted" if passed else "settled"}, work)
    response = interrupt({"position": state["position"], "unit": context.unit(state).id, "passed": passed})
    answer: Mapping[str, Any] = response if isinstance(response, Mapping) else {"action": response}
    match str(answer["action"]), str(answer.get("text", "")):
        case "accept", _ if passed:
            return Step({"outcome": "accepted"}, work)
        case "edit", text:
            return use(work, {**_latest_texts(work), owner(context, state): text}, "human")
        case "retry", hint:
            outcome = "refill" if work.drafted().holes else "rework"
            return Step({"outcome": outcome, "granted": state.get("granted", 0) + 1}, replace(work, hint=hint))
        case "ask", question:
            update, answered = _ask_model(context, state, work, question)
            return Step({**update, "outcome": "asked", "standing": standing}, answered)
        case "undo", _ if last_accepted(context, state) is not None:
            return Step({"outcome": "undo"}, work)
        case "skip", _ if passed:
            return settle(context, state, work, "skipped", Cause.REVIEW, "verified, but not accepted in the review")
        case _:
            return Step({"outcome": "settled"}, work)


def undo(context: Context, state: RunState) -> RunState:
    """Take the last accepted unit's commit off the branch, with those of its cycle, and come back to the (first one's) review.

    The units after it are worked on again. The ledger keeps what a model answered, so nothing is paid twice.
    """
    position = last_accepted(context, state)
    assert position is not None  # review comes here only then
    settled = context.settled(state["position"])
    together = [other for other in context.plan.cycle(context.plan.order[position]) if settled[other].status == "verified"]
    undone = together or [context.plan.order[position]]
    for other in reversed(undone):
        parent = context.branch.take_off(settled[other].commit)
    position, result = context.plan.order.index(undone[0]), settled[undone[0]]
    context.reopen(position)
    spent = result.llm
    return {
        "position": position,
        "outcome": "passed",
        "attempts": result.attempts,
        "calls": spent.calls,
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
        "cost": spent.cost,
        "model_seconds": spent.seconds,
        "proposer": load_work(context.unit_folder(position), result.attempts).attempts[-1].by,
        "seconds": result.seconds,
        "head": parent,
        "commits": state["commits"] - len(undone),
    }


def last_accepted(context: Context, state: RunState) -> int | None:
    """Position of the unit that was committed last, `None` where none was."""
    accepted = context.accepted(state["position"])
    return context.plan.order.index(accepted[-1]) if accepted else None


def has_draft(state: RunState, work: UnitWork) -> bool:
    """Whether there is a rewrite of the unit at work to look at."""
    return bool(state.get("attempts", 0)) and work.draft is not None


def owner(context: Context, state: RunState) -> str:
    """`file:name` of the outermost class of the unit at work."""
    unit = context.unit(state)
    return f"{unit.source}:{unit.name.partition('.')[0]}"


def class_now(context: Context, state: RunState, work: UnitWork) -> str:
    """The text of the unit's class in the latest draft."""
    return statement_text(work.drafted(), context.inventory, owner(context, state))


def _latest_texts(work: UnitWork) -> dict[str, str]:
    return dict(work.attempts[-1].texts) if work.attempts else {}


def _ask_model(context: Context, state: RunState, work: UnitWork, question: str) -> Step:
    if context.model is None:
        return Step({}, work)
    text, used = context.model.ask(request(context, state, work), question)
    return Step(counted(state, used), replace(work, answer=text))
