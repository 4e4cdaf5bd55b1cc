"""fill: ask the model for what the rules left open. Without one, the holes are the reason why the unit is not verified."""

from __future__ import annotations

from migrate_agent.agent.context import Context
from migrate_agent.agent.llm import Proposal, Request
from migrate_agent.agent.nodes.common import isolated, settle, timed
from migrate_agent.agent.state import RunState
from migrate_agent.agent.store import write
from migrate_agent.tools.types import Hole, Status

ATTEMPTS = 4
"""Proposals for one unit, the rules' own draft included."""


@timed
@isolated
def fill(context: Context, state: RunState) -> RunState:
    """Take up the model's texts, or settle the unit with its holes."""
    holes = context.draft(state).holes
    if context.model is None or state["attempts"] >= ATTEMPTS:
        needs = "" if context.model else "; a language model could fill them"
        return settle(context, state, "unverified", f"{describe(holes)}{needs}", holes=holes)
    context.progress.stage(context.unit(state).id, f"asking the model to fill {len(holes)} holes")
    return take_up(context, state, context.model.fill(request(context, state)), "unverified", describe(holes))


def request(context: Context, state: RunState) -> Request:
    """What the model is shown of the unit at work."""
    unit = context.unit(state)
    source = (context.original / unit.source).read_text(encoding="utf-8")
    return Request(unit, source, context.draft(state), state["attempts"], context.evidence(state))


def take_up(context: Context, state: RunState, proposal: Proposal, status: Status, reason: str) -> RunState:
    """Count what a proposal cost, and use its texts; a model that gave up settles the unit."""
    spent: RunState = {
        "calls": state.get("calls", 0) + proposal.usage.calls,
        "input_tokens": state.get("input_tokens", 0) + proposal.usage.input_tokens,
        "output_tokens": state.get("output_tokens", 0) + proposal.usage.output_tokens,
    }
    if not proposal.overrides:
        return {**spent, **settle(context, {**state, **spent}, status, f"{reason}; the model gave up", holes=context.draft(state).holes)}
    write(context.unit_folder(state) / "overrides.json", proposal.overrides)
    return {**spent, "outcome": "proposed"}


def describe(holes: tuple[Hole, ...], most: int = 3) -> str:
    """`2 holes: model.py:12: … ; …`, the first ones spelt out."""
    shown = "; ".join(f"{hole.source}:{hole.span.line}: {hole.reason}" for hole in holes[:most])
    more = f"; and {len(holes) - most} more" if len(holes) > most else ""
    return f"{len(holes)} hole{'s' if len(holes) > 1 else ''}: {shown}{more}"
