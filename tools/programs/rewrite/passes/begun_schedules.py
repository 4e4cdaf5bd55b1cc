"""Schedules that a resumed run would go on with: `last_epoch=start - 1` is -1 in a run from the beginning, and anything else is refused as it runs.

scheduler = StepLR(optimizer, 30, last_epoch=start - 1)

becomes

if start - 1 != -1:
    raise NotImplementedError("StepLR goes on from the middle of its schedule: …")
scheduler = StepLR(optimizer, 30)
"""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from migrate_agent.tools.programs.rewrite.names import Imports, code
from migrate_agent.tools.programs.tables.arguments import literal, parse_signature
from migrate_agent.tools.programs.tables.registry import schedules

NAME = "last_epoch"
TIGHT = (cst.Name, cst.Attribute, cst.Subscript, cst.Call, cst.BinaryOperation, cst.UnaryOperation)
"""Expressions that bind closer than a comparison."""


@dataclass(frozen=True)
class Begun:
    """The construction of a scheduler without `last_epoch`, and the statement that refuses a run which goes on from another count."""

    call: cst.Call
    guard: cst.BaseStatement


def begun(call: cst.Call, imports: Imports) -> Begun | None:
    """The construction of a scheduler whose `last_epoch` only the run knows; `None` for any other call."""
    row = schedules().get(imports.of(call.func))
    argument = _argument(call, list(parse_signature(f"optimizer, {row.signature}").parameters)) if row is not None else None
    if argument is None or literal(code(argument.value)).known:
        return None
    value = code(argument.value) if isinstance(argument.value, TIGHT) else f"({code(argument.value)})"
    name = imports.of(call.func).rpartition(".")[2]
    reason = f"{name} goes on from the middle of its schedule: restore the count with the optimizer's state"
    guard = cst.parse_statement(f'if {value} != -1:\n    raise NotImplementedError("{reason}")\n')
    others = [one for one in call.args if one is not argument]
    return Begun(call.with_changes(args=[*others[:-1], others[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)]), guard)


def _argument(call: cst.Call, names: list[str]) -> cst.Arg | None:
    """The argument that is `last_epoch`, by its name or as the last place."""
    if any(one.star for one in call.args):
        return None
    named = [one for one in call.args if one.keyword is not None and one.keyword.value == NAME]
    positional = [one for one in call.args if one.keyword is None]
    at = names.index(NAME) if NAME in names else len(positional)
    # What stands behind it by place would move up.
    return named[0] if named else positional[at] if at == len(positional) - 1 else None
