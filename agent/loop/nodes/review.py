"""review: in a session at a terminal the user has the last word: on what was verified, and on what to do about the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.types import interrupt

from migrate_agent.agent.config.json_files import write_text
from migrate_agent.agent.loop.attempts import history
from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.nodes.common import settle
from migrate_agent.agent.loop.nodes.propose import counted, request, use
from migrate_agent.agent.model.numbered_holes import statement_text
from migrate_agent.agent.runs.state import RunState

ACTIONS = ("accept", "skip", "edit", "retry", "ask", "undo")
"""What `interrupt` is resumed with: one of these, or a mapping with it as `action` and the `text` that belongs to it."""
ANSWER = "answer.md"
"""The model's answer to the user's last question, in the unit's folder."""


def review(context: Context, state: RunState) -> RunState:
    """Ask by `interrupt`; without a session, accept what passed and leave the rest."""
    standing = state["outcome"] if state["outcome"] in ("passed", "settled") else state["standing"]
    passed = standing == "passed"
    if not context.settings.interactive or not (passed or drafted(context, state)):
        return {"outcome": "accepted" if passed else "settled"}
    given = interrupt({"position": state["position"], "unit": context.unit(state).id, "passed": passed})
    answer: Mapping[str, Any] = given if isinstance(given, Mapping) else {"action": given}
    match str(answer["action"]), str(answer.get("text", "")):
        case "accept", _ if passed:
            return {"outcome": "accepted"}
        case "edit", text:
            return use(context, state, {**_texts(context, state), owner(context, state): text}, "human")
        case "retry", hint:
            write_text(context.unit_folder(state) / "hint.txt", hint)
            return {"outcome": "refill" if context.draft(state).holes else "rework", "granted": state.get("granted", 0) + 1}
        case "ask", question:
            return {**_asked(context, state, question), "outcome": "asked", "standing": standing}
        case "undo", _ if last_accepted(context, state) is not None:
            return {"outcome": "undo"}
        case "skip", _ if passed:
            return settle(context, state, "skipped", "verified, but not accepted in the review")
        case _:
            return {"outcome": "settled"}


def undo(context: Context, state: RunState) -> RunState:
    """Take the last accepted unit's commit off the branch, with those of its circle, and come back to the (first one's) review.

    The units after it are worked on again; what a model answered is kept, so nothing is paid twice.
    """
    place = last_accepted(context, state)
    assert place is not None  # review comes here only then
    settled = context.settled(state["position"])
    together = [other for other in context.plan.circle(context.plan.order[place]) if settled[other].status == "verified"]
    taken = together or [context.plan.order[place]]
    for other in reversed(taken):
        parent = context.branch.take_off(settled[other].commit)
    place, done = context.plan.order.index(taken[0]), settled[taken[0]]
    context.reopen(place)
    spent = done.llm
    return {
        "position": place,
        "outcome": "passed",
        "attempts": done.attempts,
        "calls": spent.calls,
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
        "cost": spent.cost,
        "model_seconds": spent.seconds,
        "proposer": history(context.unit_folder({"position": place}), done.attempts)[-1].by,
        "seconds": done.seconds,
        "head": parent,
        "commits": state["commits"] - len(taken),
    }


def last_accepted(context: Context, state: RunState) -> int | None:
    """Place of the unit that was committed last, `None` where none was."""
    done = context.settled(state["position"])
    places = [place for place, name in enumerate(context.plan.order[: state["position"]]) if done[name].status == "verified"]
    return places[-1] if places else None


def drafted(context: Context, state: RunState) -> bool:
    """Whether there is a rewrite of the unit at work to look at."""
    return bool(state.get("attempts", 0)) and (context.unit_folder(state) / "draft.json").exists()


def owner(context: Context, state: RunState) -> str:
    """`file:name` of the outermost class of the unit at work."""
    unit = context.unit(state)
    return f"{unit.source}:{unit.name.partition('.')[0]}"


def class_now(context: Context, state: RunState) -> str:
    """The text of the unit's class in the latest draft."""
    return statement_text(context.draft(state), context.inventory, owner(context, state))


def _texts(context: Context, state: RunState) -> dict[str, str]:
    made = history(context.unit_folder(state), state["attempts"])
    return dict(made[-1].texts) if made else {}


def _asked(context: Context, state: RunState, question: str) -> RunState:
    if context.model is None:
        return {}
    text, used = context.model.ask(request(context, state), question)
    write_text(context.unit_folder(state) / ANSWER, text)
    return counted(state, used)
