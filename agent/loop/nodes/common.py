"""What the nodes of a unit share: how a unit is settled, how time is counted, and how a fault in one unit is kept from the others."""

from __future__ import annotations

import functools
import sys
import time
import traceback
from collections.abc import Callable
from typing import Literal

from migrate_agent.agent.config.errors import UserError
from migrate_agent.agent.config.json_files import write_text
from migrate_agent.agent.loop.attempts import best, history
from migrate_agent.agent.loop.context import Context, usage
from migrate_agent.agent.loop.rerun import run_again
from migrate_agent.agent.runs.state import RunState
from migrate_agent.sandbox.base import SandboxError
from migrate_agent.tools.types import Evidence, Hole, Status, UnitReport

Node = Callable[[Context, RunState], RunState]


def settle(
    context: Context,
    state: RunState,
    status: Status,
    reason: str = "",
    commit: str = "",
    holes: tuple[Hole, ...] = (),
    notes: tuple[str, ...] = (),
) -> RunState:
    """Note the end of the unit at work, with the evidence there is, and how a numeric failure is run again."""
    unit = context.unit(state)
    evidence = _evidence(context, state, status)
    again = run_again(context.settings.root, unit, context.unit_folder(state), evidence) if evidence else ""
    if again:
        context.progress.note(again)
    drafted = (context.unit_folder(state) / "draft.json").exists()
    report = UnitReport(
        source=unit.source,
        name=unit.name,
        target=unit.target,
        status=status,
        proposer=_proposer(state, status),
        attempts=state.get("attempts", 0),
        commit=commit,
        seconds=round(state.get("seconds", 0.0) + time.monotonic() - state.get("started", time.monotonic()), 3),
        llm=usage(state),
        verdicts=evidence.verdicts if evidence else (),
        reason=reason,
        holes=holes,
        notes=(
            *(notes or (context.draft(state).notes if drafted and state.get("attempts", 0) else ())),
            *(evidence.notes if evidence else ()),
            *([f"an example given for it does not run: {context.plan.lost[unit.id]}"] if unit.id in context.plan.lost else []),
            *([again] if again else []),
        ),
        figures=evidence.figures if evidence else {},
    )
    context.settle(state, report)
    return {"outcome": "settled"}


def _evidence(context: Context, state: RunState, status: Status) -> Evidence | None:
    """The latest on a unit that is verified (or was left in the review), the best that there is on one that is not."""
    if not state.get("attempts", 0):
        return None
    latest = context.evidence(state)
    if status in ("verified", "skipped") or latest is None:
        return latest
    return best(history(context.unit_folder(state), state["attempts"])) or latest


def _proposer(state: RunState, status: Status) -> Literal["rules", "llm", "human"]:
    """Whose text it is; of a unit without one, whether a model was asked."""
    by = state.get("proposer", "rules")
    if status == "verified" or by == "human":
        return "human" if by == "human" else "llm" if by == "llm" else "rules"
    return "llm" if state.get("calls", 0) else "rules"


def timed(node: Node) -> Node:
    """Add the node's wall-clock seconds to the unit's."""

    @functools.wraps(node)
    def wrapped(context: Context, state: RunState) -> RunState:
        start = time.monotonic()
        update = node(context, {**state, "started": start})
        return {**update, "seconds": state.get("seconds", 0.0) + time.monotonic() - start}

    return wrapped


def isolated(node: Node) -> Node:
    """A fault of ours in one unit settles that unit as unverified, with the traceback in its folder; the other units go on.

    A sandbox that does not work is no fault of the unit: it stops the run, which can be resumed.
    """

    @functools.wraps(node)
    def wrapped(context: Context, state: RunState) -> RunState:
        try:
            return node(context, state)
        except (UserError, SandboxError):
            raise
        except Exception as error:
            text = traceback.format_exc()
            file = context.unit_folder(state) / "error.txt"
            write_text(file, text)
            if context.debug:
                sys.stderr.write(text)
            line = str(error).strip().splitlines()[:1] or [""]
            return settle(context, state, "unverified", f"internal error in {node.__name__}: {type(error).__name__}: {line[0]}")

    return wrapped
