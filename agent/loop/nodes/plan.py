"""plan: which units are in scope, and which of them are tried."""

from __future__ import annotations

from collections.abc import Sequence

from migrate_agent.agent.config.json_files import write
from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.programs import configured_programs
from migrate_agent.agent.loop.scope import find_unit, plan_scope, with_named
from migrate_agent.agent.runs.state import Plan, RunState
from migrate_agent.tools.types import Example


def plan(context: Context, state: RunState) -> RunState:
    """Write `scope.json`. Raises `UsageError` where `--module` or a `[[unit]]` names what is not there."""
    for table in context.config.unit:
        find_unit(context.inventory, table.module)
    examples = context.services.examples(context.inventory, context.config) if context.settings.modules else ()
    decided = _scope(context, examples)
    write(context.folder / "scope.json", decided)
    context.progress.total = len(decided.order)
    context.progress.note(f"{len(decided.order)} units to migrate, {len(decided.skipped)} to leave, on branch {context.settings.branch}")
    return {"outcome": "planned", "position": -1, "head": context.settings.base, "commits": 0}


def widen_scope(context: Context, examples: Sequence[Example]) -> None:
    """Take what the examples of the units in scope are made of into it, where `--module` names some: a guess builds an encoder of layers of attention."""
    decided = _scope(context, examples) if context.settings.modules else context.scope
    if decided.order == context.scope.order:
        return
    write(context.folder / "scope.json", decided)
    vars(context)["scope"] = decided  # it is cached
    context.progress.total = len(decided.order)
    context.progress.note(f"{len(decided.order)} units to migrate, with those that the examples of the named ones are made of")


def _scope(context: Context, examples: Sequence[Example]) -> Plan:
    """The units that the run is to migrate, and those that these examples name."""
    programs = [program.source for program in configured_programs(context.config, context.original)]
    modules = [module for module in context.settings.modules if module not in programs]
    named = with_named(context.inventory, examples, modules)[len(modules) :] if modules else ()
    return plan_scope(context.inventory, (*context.settings.modules, *named), context.config.run.exclude, programs)
