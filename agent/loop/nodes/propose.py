"""What fill and repair share: what a model is shown, what becomes of its answer, and where the budgets end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from migrate_agent.agent.config.json_files import read, write
from migrate_agent.agent.loop import attempts
from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.nodes.common import settle
from migrate_agent.agent.model.interface import Attempt, Proposal, Request
from migrate_agent.agent.runs.recordings import examples_of
from migrate_agent.agent.runs.state import RunState
from migrate_agent.tools.types import Draft, Hole, Status, Usage

Asked = Callable[[Request], Proposal]


def propose(context: Context, state: RunState, asked: Asked, status: Status, reason: str) -> RunState:
    """Take up a model's texts, note an answer that is of no use, or settle the unit: with `status` where the model gave up, else as failed."""
    waiting = _queued(context, state)
    if waiting is not None:
        return _take_up(context, state, Proposal(waiting, name="next of the ensemble"))
    spent = over_budget(context, state)
    if spent:
        return settle(context, state, "failed", f"{reason}; {spent}", holes=_open(context, state))
    proposal = asked(request(context, state))
    state = {**state, **counted(state, proposal.usage)}
    if proposal.refused:
        return _refused(context, state, proposal, proposal.refused)
    if not proposal.overrides:
        given_up = proposal.gave_up or "the model gave up"
        status = "failed" if proposal.gave_up else status
        return {**_counts(state), **settle(context, state, status, f"{reason}; {given_up}", holes=_open(context, state))}
    if proposal.others:
        write(_queue(context, state), list(proposal.others))
    return _take_up(context, state, proposal)


def request(context: Context, state: RunState) -> Request:
    """What the model is shown of the unit at work."""
    unit, folder = context.unit(state), context.unit_folder(state)
    draft = context.draft(state)
    rules = read(folder / "rules.json", Draft)
    paths = {unit.source, *(hole.source for hole in rules.holes)}
    hint = folder / "hint.txt"
    return Request(
        unit,
        draft,
        state["attempts"],
        context.evidence(state),
        {path: (context.original / path).read_text(encoding="utf-8") for path in sorted(paths)},
        context.inventory,
        rules,
        context.recording.observations.get(unit.source, {}),
        examples_of(context.recording, unit.id),
        attempts.history(folder, state["attempts"]),
        hint.read_text(encoding="utf-8") if hint.exists() else "",
    )


def over_budget(context: Context, state: RunState) -> str:
    """Which of the unit's or the run's budgets is spent, "" where none is. Those of calls are kept where they are made, too."""
    budget = context.config.budget
    made = attempts.count(attempts.history(context.unit_folder(state), state["attempts"]), "llm")
    if made >= budget.attempts - 1 + state.get("granted", 0):
        return f"all {budget.attempts} attempts are spent"
    if budget.unit_seconds is not None and state.get("seconds", 0.0) >= budget.unit_seconds:
        return f"the unit's budget of {budget.unit_seconds:g} s is spent"
    before = sum(report.seconds for report in context.settled(state["position"]).values())
    if budget.seconds is not None and before + state.get("seconds", 0.0) >= budget.seconds:
        return f"the run's budget of {budget.seconds:g} s is spent"
    return ""


def use(context: Context, state: RunState, texts: Mapping[str, str], by: str, name: str = "") -> RunState:
    """Put texts in the place of the unit's latest, to be composed and verified next."""
    write(context.unit_folder(state) / "overrides.json", texts)
    return {"outcome": "proposed", "proposer": by, "name": name}


def _take_up(context: Context, state: RunState, proposal: Proposal) -> RunState:
    """The texts, unless the same were tried before: these are not verified again."""
    made = attempts.history(context.unit_folder(state), state["attempts"])
    twin = attempts.same_as(made, proposal.overrides)
    if twin is not None:
        return _refused(context, state, proposal, f"the same as attempt {twin.number}, which was not right")
    return {**_counts(state), **use(context, state, proposal.overrides, "llm", proposal.name)}


def _refused(context: Context, state: RunState, proposal: Proposal, reason: str) -> RunState:
    number = state["attempts"] + 1
    attempts.note(context.unit_folder(state), Attempt(number, "llm", name=proposal.name, refused=reason))
    context.progress.stage(context.unit(state).id, f"attempt {number}: {reason}")
    return {**_counts(state), "attempts": number, "outcome": "refused"}


def _queued(context: Context, state: RunState) -> Mapping[str, str] | None:
    """The next proposal of an ensemble that was not tried yet."""
    file = _queue(context, state)
    if not file.exists():
        return None
    made = attempts.history(context.unit_folder(state), state["attempts"])
    queue: list[dict[str, str]] = read(file, list)
    return next((texts for texts in queue if attempts.same_as(made, texts) is None), None)


def _queue(context: Context, state: RunState) -> Path:
    return context.unit_folder(state) / "queue.json"


def _open(context: Context, state: RunState) -> tuple[Hole, ...]:
    return context.draft(state).holes


COUNTED = ("calls", "input_tokens", "output_tokens", "cost", "model_seconds")


def counted(state: RunState, used: Usage) -> RunState:
    """The counters with what a call cost."""
    return {
        "calls": state.get("calls", 0) + used.calls,
        "input_tokens": state.get("input_tokens", 0) + used.input_tokens,
        "output_tokens": state.get("output_tokens", 0) + used.output_tokens,
        "cost": state.get("cost", 0.0) + used.cost,
        "model_seconds": state.get("model_seconds", 0.0) + used.seconds,
    }


def _counts(state: RunState) -> RunState:
    return {name: state[name] for name in COUNTED if name in state}  # type: ignore[literal-required, return-value]
