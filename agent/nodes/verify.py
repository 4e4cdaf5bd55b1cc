"""verify: the draft as a tree of its own, judged against the base commit."""

from __future__ import annotations

from collections.abc import Mapping

from migrate_agent.agent.ahead import Situation
from migrate_agent.agent.attempts import judged
from migrate_agent.agent.context import Context
from migrate_agent.agent.nodes.common import isolated, settle, timed
from migrate_agent.agent.nodes.plan import closure
from migrate_agent.agent.nodes.rewrite import overrides
from migrate_agent.agent.snippet import class_names
from migrate_agent.agent.state import RunState
from migrate_agent.agent.store import write
from migrate_agent.tools.rewrite import Untranslatable
from migrate_agent.tools.types import Evidence, UnitReport


@timed
@isolated
def verify(context: Context, state: RunState) -> RunState:
    """Write `evidence.json`. A unit passes where every verdict does, and all that it needs was verified before it."""
    unit, folder = context.unit(state), context.unit_folder(state)
    now = situation(context, state)

    def tell(text: str) -> None:
        context.progress.stage(unit.id, f"verifying: {text}")

    try:
        evidence = context.ahead.judge(context, now, context.draft(state), folder, tell)
    except Untranslatable as error:
        return settle(context, state, "unverified", f"its example cannot be put in the mirror's names: {error}")
    write(folder / "evidence.json", evidence)
    judged(folder, state["attempts"], evidence)
    return _outcome(context, state, evidence)


def situation(context: Context, state: RunState) -> Situation:
    """Where the run is, for who looks ahead."""
    return Situation(state["position"], tuple(context.accepted(state)), overrides(context, state))


def _outcome(context: Context, state: RunState, evidence: Evidence) -> RunState:
    if evidence.status == "failed":
        return {"outcome": "failed"}
    if evidence.status == "unverified":
        return settle(context, state, "unverified", why(evidence))
    blocked = blocking(context, state)
    return settle(context, state, "unverified", blocked) if blocked else {"outcome": "passed"}


def why(evidence: Evidence) -> str:
    """The first verdict that did not pass, in one line."""
    for wanted in ("fail", "unverified"):
        for verdict in evidence.verdicts:
            if verdict.status == wanted:
                return f"{verdict.stage}/{verdict.check}: {verdict.detail}" if verdict.detail else f"{verdict.stage}/{verdict.check}"
    return "" if evidence.verdicts else "no check could be run"


def blocking(context: Context, state: RunState) -> str:
    """Which unit that the draft holds, or that the one at work needs, stands in its way; "" where none does.

    One that no example reaches (an abstract base) does not: what of it is used was judged with this one. One that was tried and could not be
    judged does.
    """
    unit, files = context.unit(state), context.draft(state).files
    done = context.settled(state["position"])
    needed = closure(context.inventory, unit.id)
    defined = {(path, name) for path, text in files.items() for name in class_names(text)}
    for other in context.inventory.units:
        held = other.id in needed or (other.target, other.name) in defined
        if held and other.id != unit.id and (reason := _why_not(context, done, other.id)):
            return f"needs {other.id}, which is {reason}"
    return ""


def _why_not(context: Context, done: Mapping[str, UnitReport], identifier: str) -> str:
    if identifier in done:
        report = done[identifier]
        unreached = report.status == "unverified" and not report.holes and not report.verdicts and report.reason.startswith("no example")
        return "" if report.status == "verified" or unreached else report.status
    if identifier in context.plan.skipped:
        return f"skipped: {context.plan.skipped[identifier]}"
    return "not verified before it" if identifier in context.plan.order else "out of the scope of --module"
