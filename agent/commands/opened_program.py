"""A program of a repository with its rewrite, as commands that take both open them."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from migrate_agent.agent.config.config import Config, load_config
from migrate_agent.agent.config.errors import UsageError
from migrate_agent.agent.loop.programs import configured_programs
from migrate_agent.agent.loop.services import Services
from migrate_agent.agent.repository.git import open_repository
from migrate_agent.tools.programs.program import Program
from migrate_agent.tools.types import Inventory


@dataclass(frozen=True)
class OpenedProgram:
    """The root of a repository, its configuration and files, one of its programs, and the path of the rewrite, relative to the root."""

    root: Path
    config: Config
    inventory: Inventory
    program: Program
    target: str


def open_program(root: Path, source: str, services: Services, against: str = "", options: Sequence[str] | None = None) -> OpenedProgram:
    """The program `source` as `[[program]]` runs it, with `options` in place of its own where they are given.

    The rewrite is `against`, or the script's mirror. Raises `UsageError` where one of both is not there.
    """
    repository = open_repository(root)
    config = load_config(repository.root)
    programs = configured_programs(config, repository.root)
    program = next((one for one in programs if one.source == source), Program((source,)))
    if options is not None:
        program = replace(program, command=(source, *options), steps=0)
    if not (repository.root / source).is_file():
        raise UsageError(f"{source} is not in {repository.root}")
    inventory = services.scanned(repository.root, config)
    mirror = next((file.target for file in inventory.files if file.path == source), "")
    target = posixpath.normpath(against) if against else mirror
    if not (repository.root / target).is_file():
        raise UsageError(
            f"{target or 'the rewrite'} is not there: name the rewrite with --against" if not against else f"{target} is not there"
        )
    return OpenedProgram(repository.root, config, inventory, program, target)
