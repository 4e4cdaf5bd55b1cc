"""What the nodes of a unit share: how its work is loaded and written, how it is settled, and how a fault in it is kept from other units."""

from __future__ import annotations

import functools
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, NamedTuple

from migrate_agent.agent.config.errors import UserError
from migrate_agent.agent.config.json_files import write_text
from migrate_agent.agent.loop.attempts import best_evidence
from migrate_agent.agent.loop.context import Context, usage
from migrate_agent.agent.loop.rerun import replay_note
from migrate_agent.agent.loop.unit_work import UnitWork
from migrate_agent.agent.loop.unreached import figures
from migrate_agent.agent.runs.state import RunState
from migrate_agent.sandbox.base import SandboxError
from migrate_agent.tools.types import Cause, Evidence, Hole, Status, UnitReport


class Step(NamedTuple):
    """What a node of a unit gives: the update of the checkpointed state, and the work with what the node did."""

    update: RunState
    work: UnitWork


Node = Callable[[Context, RunState], RunState]
UnitNode = Callable[[Context, RunState, UnitWork], Step]


def on_unit(node: UnitNode) -> Node:
    """A node of the graph that loads the work on the unit, and writes what `node` changed in it.

    The files are written before the graph's checkpoint. A kill between the two does the node again, on the same work: `load_work` leaves out
    attempts that the checkpoint does not know, and a node writes its other parts anew.
    """

    @functools.wraps(node)
    def wrapped(context: Context, state: RunState) -> RunState:
        before = context.load(state)
        update, after = node(context, state, before)
        context.save(state["position"], before, after)
        return update

    return wrapped


def settle(
    context: Context,
    state: RunState,
    work: UnitWork,
    status: Status,
    cause: Cause,
    reason: str = "",
    commit: str = "",
    holes: tuple[Hole, ...] = (),
    notes: tuple[str, ...] = (),
    example: str = "",
) -> Step:
    """End the unit at work, with the evidence there is, and with how a numeric failure is run again."""
    unit = context.unit(state)
    evidence = _evidence(state, work, status)
    reach = figures(evidence.reach if evidence else None, keep=context.config.run.keep_unreached)
    through_torchax = state.get("proposer") == "torchax" or (evidence is not None and unit.id in evidence.torchax)
    if status == "verified" and through_torchax:
        reason = "not rewritten: the original runs through torchax"
    elif status == "verified" and "kept" in reach:
        reason = f"but for {reach['kept']} places that no example reaches, kept as [run] keep_unreached asks"
    again = replay_note(context.settings.root, unit, work.folder, evidence) if evidence else ""
    if again:
        context.progress.note(again)
    if through_torchax and status != "verified" and work.result is not None:
        cause, holes = work.result.cause, work.result.holes
        reason = f"{work.result.reason}; through torchax: {reason}"
    example_error = context.plan.failed_examples.get(unit.id)
    result = UnitReport(
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
        cause=cause,
        example=example,
        holes=holes,
        notes=(
            *(notes or (work.draft.notes if work.draft is not None and state.get("attempts", 0) else ())),
            *(evidence.notes if evidence else ()),
            *([f"an example given for it does not run: {example_error}"] if example_error is not None else []),
            *([again] if again else []),
        ),
        figures=evidence.figures if evidence else {},
        kind=unit.kind,
        reach=reach,
        strategy="torchax" if through_torchax else "rewrite",
    )
    return Step({"outcome": "settled"}, replace(work, result=result))


def _evidence(state: RunState, work: UnitWork, status: Status) -> Evidence | None:
    """The latest on a unit that is verified (or was left in the review), the best that there is on one that is not."""
    if not state.get("attempts", 0):
        return None
    if status in ("verified", "skipped") or work.evidence is None:
        return work.evidence
    return best_evidence(work.attempts) or work.evidence


def _proposer(state: RunState, status: Status) -> Literal["rules", "llm", "human"]:
    """Whose text it is; of a unit without one, whether a model was asked."""
    proposer = state.get("proposer", "rules")
    if status == "verified" or proposer == "human":
        return "human" if proposer == "human" else "llm" if proposer == "llm" else "rules"
    return "llm" if state.get("calls", 0) else "rules"


def timed(node: UnitNode) -> UnitNode:
    """Add the node's wall-clock seconds to the unit's."""

    @functools.wraps(node)
    def wrapped(context: Context, state: RunState, work: UnitWork) -> Step:
        start = time.monotonic()
        update, after = node(context, {**state, "started": start}, work)
        return Step({**update, "seconds": state.get("seconds", 0.0) + time.monotonic() - start}, after)

    return wrapped


def isolated(node: UnitNode) -> UnitNode:
    """A fault of ours in one unit settles that unit as unverified, with the traceback in its folder; the other units go on.

    A sandbox that does not work is no fault of the unit: it stops the run, which can be resumed.
    """

    @functools.wraps(node)
    def wrapped(context: Context, state: RunState, work: UnitWork) -> Step:
        try:
            return node(context, state, work)
        except (UserError, SandboxError):
            raise
        except Exception as error:
            text = traceback.format_exc()
            write_text(work.folder / "error.txt", text)
            if context.debug:
                sys.stderr.write(text)
            line = str(error).strip().splitlines()[:1] or [""]
            return settle(
                context, state, work, "unverified", Cause.INTERNAL, f"internal error in {node.__name__}: {type(error).__name__}: {line[0]}"
            )

    return wrapped
