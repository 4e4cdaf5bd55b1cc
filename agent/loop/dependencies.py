"""What stands in a unit's way though its own checks pass: other units that its draft holds, or would have to hold, and that are not verified."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from textwrap import shorten

from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.scope import named_units
from migrate_agent.agent.runs.class_text import class_names, function_names
from migrate_agent.agent.runs.recordings import examples_of
from migrate_agent.tools.types import Cause, Draft, Evidence, Unit, UnitReport

LOOKUPS = frozenset({"ImportError", "NameError", "AttributeError"})
"""Classes of errors by which a name is told to be missing."""
LONGEST = 160
"""Characters of another unit's reason that are told."""


def why(evidence: Evidence) -> str:
    """The first verdict that did not pass, in one line."""
    for status in ("fail", "unverified"):
        for verdict in evidence.verdicts:
            if verdict.status == status:
                return f"{verdict.stage}/{verdict.check}: {verdict.detail}" if verdict.detail else f"{verdict.stage}/{verdict.check}"
    return "" if evidence.verdicts else "no check could be run"


def blocking(context: Context, position: int, draft: Draft, evidence: Evidence | None = None) -> str:
    """Which unit stands in the way of the one at a place of the plan, and why; "" where none does.

    That is one whose rewrite the draft holds, or whose stub the evidence says was used. One that no example reaches (an abstract base) is in
    nobody's way: what of it is used was judged with this one. One that was tried and could not be judged is, where it is a module: the calls
    of this unit show nothing of how it is built alone. A function is what it is here, so that only one with a failed check stands in the way.
    """
    own = context.plan.order[position]
    settled = context.settled(position)
    defined = {(path, name) for path, text in draft.files.items() for name in (*class_names(text), *function_names(text))}
    for other in context.inventory.units:
        if other.id == own or (other.target, other.name) not in defined:
            continue
        reason = _used(context, settled, other, draft, evidence) if other.id in draft.postponed else _held(context, settled, own, other)
        if reason:
            return f"needs {other.id}, which is {reason}"
    return _absent(context, own, settled, defined, evidence) if evidence is not None else ""


def _absent(context: Context, own: str, settled: Mapping[str, UnitReport], defined: Collection[tuple[str, str]], evidence: Evidence) -> str:
    """Which unit that the examples name is not there, where an import or a name failed; "" where none is."""
    raised = {verdict.raised.type for verdict in evidence.verdicts if verdict.status != "pass" and verdict.raised is not None}
    if not raised & LOOKUPS:
        return ""
    for other in (
        context.inventory.unit(name) for row in examples_of(context.recording, own) for name in named_units(context.inventory, row)
    ):
        if other.name.rpartition(".")[2] in _names_of(own, context) and (other.target, other.name) not in defined:
            report = settled.get(other.id)
            return f"needs {other.id}, which its example names and which is {_told(report) if report else _untried(context, other)}"
    return ""


def _names_of(own: str, context: Context) -> set[str]:
    """The names that the examples of a unit read or import, without those of arguments and within words."""
    names = set[str]()
    for example in examples_of(context.recording, own):
        for node in ast.walk(ast.parse(f"{example.setup}\n_unit({example.init}\n)")):
            match node:
                case ast.Name(id=name) | ast.Attribute(attr=name):
                    names.add(name)
                case ast.alias(name=name):
                    names.add(name.rpartition(".")[2])
    return names


def _held(context: Context, settled: Mapping[str, UnitReport], own: str, other: Unit) -> str:
    """Why a unit whose rewrite is in the draft must not be there."""
    report = settled.get(other.id)
    beside = other.id in context.plan.cycle(own)
    if report is None:
        return "" if beside or other.kind == "function" else _untried(context, other)
    if other.kind == "function" and report.status != "failed":
        return ""
    if report.status == "verified" or _unreached(report) or (beside and context.waits(context.plan.order.index(other.id))):
        return ""
    return _told(report)


def _used(context: Context, settled: Mapping[str, UnitReport], other: Unit, draft: Draft, evidence: Evidence | None) -> str:
    """Why a unit of which the draft has the stub only is needed after all."""
    raised = [verdict.raised for verdict in evidence.verdicts if verdict.status != "pass" and verdict.raised] if evidence else []
    if not any(
        other.target.endswith(error.file) and _in_class(draft.files[other.target], other, error.line) for error in raised if error.file
    ):
        return ""
    return _told(settled[other.id]) if other.id in settled else _untried(context, other)


def _in_class(text: str, unit: Unit, line: int) -> bool:
    """Whether a line of the file lies in the statement of the unit, which in a draft that postpones the unit is a stub that raises."""
    name = unit.name.partition(".")[0]
    statements = (node for node in ast.parse(text).body if isinstance(node, (ast.ClassDef, ast.FunctionDef)))
    return any(node.name == name and node.lineno <= line <= (node.end_lineno or 0) for node in statements)


def _told(report: UnitReport) -> str:
    reason = shorten(report.reason, LONGEST, placeholder=" …")
    return f"{report.status} ({reason})" if reason else report.status


def _unreached(report: UnitReport) -> bool:
    return report.cause is Cause.NO_EXAMPLE


def _untried(context: Context, other: Unit) -> str:
    if other.id in context.plan.skipped:
        return f"skipped ({context.plan.skipped[other.id]})"
    return "not verified before it" if other.id in context.plan.order else "out of the scope of --module"
