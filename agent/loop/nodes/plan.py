"""plan: which units are in scope, and which of them are tried."""

from __future__ import annotations

from migrate_agent.agent.config.json_files import write
from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.programs import configured_programs
from migrate_agent.agent.loop.scope import find_unit, plan_scope, with_named
from migrate_agent.agent.runs.state import RunState


def plan(context: Context, state: RunState) -> RunState:
    """Write `scope.json`. Raises `UsageError` where `--module` or a `[[unit]]` names what is not there."""
    for table in context.config.unit:
        find_unit(context.inventory, table.module)
    programs = [program.source for program in configured_programs(context.config, context.original)]
    modules = [module for module in context.settings.modules if module not in programs]
    examples = context.services.examples(context.inventory, context.config) if modules else ()
    named = with_named(context.inventory, examples, modules)[len(modules) :]
    decided = plan_scope(context.inventory, (*context.settings.modules, *named), context.config.run.exclude, programs)
    write(context.folder / "scope.json", decided)
    context.progress.total = len(decided.order)
    context.progress.note(f"{len(decided.order)} units to migrate, {len(decided.skipped)} to leave, on branch {context.settings.branch}")
    return {"outcome": "planned", "position": -1, "head": context.settings.base, "commits": 0}
