"""What fill and repair share: what a model is shown, what becomes of its answer, and where the budgets end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from migrate_agent.agent.loop.attempts import attempt_with_same_code, count_by
from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.nodes.common import Step, settle
from migrate_agent.agent.loop.unit_work import Ensemble, UnitWork
from migrate_agent.agent.model.interface import Attempt, Proposal, Request
from migrate_agent.agent.runs.recordings import examples_of
from migrate_agent.agent.runs.state import RunState
from migrate_agent.tools.types import Cause, Status, Usage

Ask = Callable[[Request], Proposal]


def propose(context: Context, state: RunState, work: UnitWork, ask: Ask, status: Status, reason: str) -> Step:
    """Take up a model's texts, note an answer that is of no use, or settle the unit: with `status` where the model gave up, else as failed."""
    texts = _next_of_ensemble(state, work)
    if texts is not None:
        return _take_up(context, state, work, Proposal(texts, name="next of the ensemble"))
    spent = over_budget(context, state, work)
    if spent:
        return settle(context, state, work, "failed", Cause.BUDGET, f"{reason}; {spent}", holes=work.drafted().holes)
    proposal = ask(request(context, state, work))
    state = {**state, **counted(state, proposal.usage)}
    if proposal.refused:
        return _refuse(context, state, work, proposal, proposal.refused)
    if not proposal.overrides:
        given_up = proposal.gave_up or "the model gave up"
        cause = Cause.HOLE if work.drafted().holes else Cause.DIFFERS
        status = "failed" if proposal.gave_up else status
        update, settled = settle(context, state, work, status, cause, f"{reason}; {given_up}", holes=work.drafted().holes)
        return Step({**_counts(state), **update}, settled)
    if proposal.others:
        work = replace(work, ensemble=Ensemble(state["attempts"], tuple(proposal.others)))
    return _take_up(context, state, work, proposal)


def request(context: Context, state: RunState, work: UnitWork) -> Request:
    """What the model is shown of the unit at work."""
    unit, rules = context.unit(state), work.rules
    paths = {unit.source, *(hole.source for hole in (rules.holes if rules is not None else ()))}
    return Request(
        unit,
        work.drafted(),
        state["attempts"],
        work.evidence,
        {path: (context.original / path).read_text(encoding="utf-8-sig") for path in sorted(paths)},
        context.inventory,
        rules,
        context.recording.observations.get(unit.source, {}),
        examples_of(context.recording, unit.id),
        work.attempts,
        work.hint,
    )


def over_budget(context: Context, state: RunState, work: UnitWork) -> str:
    """Which of the unit's or the run's budgets is spent, "" where none is.

    Budgets of money and tokens are not here: the ledger checks them before each call, since one attempt may take several calls.
    """
    budget = context.config.budget
    # The first attempt is the rules', hence the 1; a retry in a session grants one more.
    if count_by(work.attempts, "llm") >= budget.attempts - 1 + state.get("granted", 0):
        return f"all {budget.attempts} attempts are spent"
    if budget.unit_seconds is not None and state.get("seconds", 0.0) >= budget.unit_seconds:
        return f"the unit's budget of {budget.unit_seconds:g} s is spent"
    # The sum over units, not the clock: a run that was interrupted for a night and resumed has the budget that it had.
    before = sum(report.seconds for report in context.settled(state["position"]).values())
    if budget.seconds is not None and before + state.get("seconds", 0.0) >= budget.seconds:
        return f"the run's budget of {budget.seconds:g} s is spent"
    return ""


def use(work: UnitWork, texts: Mapping[str, str], proposer: str, name: str = "") -> Step:
    """Put texts in the place of the unit's latest, to be composed and verified next."""
    return Step({"outcome": "proposed", "proposer": proposer, "name": name}, replace(work, texts=texts))


def _take_up(context: Context, state: RunState, work: UnitWork, proposal: Proposal) -> Step:
    """The texts, unless the same were tried before: these are not verified again."""
    twin = attempt_with_same_code(work.attempts, proposal.overrides)
    if twin is not None:
        return _refuse(context, state, work, proposal, f"the same as attempt {twin.number}, which was not right")
    update, changed = use(work, proposal.overrides, "llm", proposal.name)
    return Step({**_counts(state), **update}, changed)


def _refuse(context: Context, state: RunState, work: UnitWork, proposal: Proposal, reason: str) -> Step:
    number = state["attempts"] + 1
    context.progress.stage(context.unit(state).id, f"attempt {number}: {reason}")
    attempt = Attempt(number, "llm", name=proposal.name, refused=reason)
    return Step({**_counts(state), "attempts": number, "outcome": "refused"}, work.with_attempt(attempt))


def _next_of_ensemble(state: RunState, work: UnitWork) -> Mapping[str, str] | None:
    """The next proposal of an ensemble that was not tried yet.

    An ensemble that is as old as the present attempt was stored by this very node, which was killed before its checkpoint: then the models are
    asked again (the ledger has their answers), so that the first proposal comes first and the calls are counted.
    """
    if work.ensemble is None or work.ensemble.after >= state["attempts"]:
        return None
    return next((texts for texts in work.ensemble.proposals if attempt_with_same_code(work.attempts, texts) is None), None)


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
