"""The programs of a run: which are in scope, and what became of each, in a folder of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from migrate_agent.agent.config.config import Config, ProgramTable
from migrate_agent.agent.config.errors import ConfigError
from migrate_agent.agent.config.json_files import read
from migrate_agent.agent.loop.context import Context
from migrate_agent.tools.programs.program import NoProgramError, Program, parse_program
from migrate_agent.tools.types import UnitReport

ROW, DRAFT = "row.json", "draft.json"


def configured_programs(config: Config, root: Path) -> tuple[Program, ...]:
    """The `[[program]]` tables of a repository. Raises `ConfigError` for a command that runs no script of it."""
    return tuple(_program(table, root) for table in config.program)


def _program(table: ProgramTable, root: Path) -> Program:
    try:
        return replace(parse_program(table.run, root), reads=table.reads, writes=table.writes, steps=table.steps)
    except NoProgramError as error:
        raise ConfigError(f"[[program]] run = {table.run!r}: {error}") from None


def in_scope(programs: Sequence[Program], selected: Sequence[str]) -> tuple[Program, ...]:
    """The programs that a run with this selection takes: all, or those that it names."""
    return tuple(program for program in programs if not selected or program.source in selected)


def folder_of(context: Context, number: int) -> Path:
    """The folder of the run's `number`-th program."""
    return context.folder / "programs" / f"{number:04d}"


def program_rows(context: Context) -> list[UnitReport]:
    """The rows of the programs that were tried."""
    folders = sorted((context.folder / "programs").glob("*"))
    return [read(folder / ROW, UnitReport) for folder in folders if (folder / ROW).exists()]
