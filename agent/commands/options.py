"""Options that several commands have, and what they begin with."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from migrate_agent.agent.loop.services import Services
    from migrate_agent.agent.runs.progress import Progress


class SandboxKind(StrEnum):
    """Where untrusted code runs."""

    auto = "auto"
    docker = "docker"
    bubblewrap = "bubblewrap"
    process = "process"


Repo = Annotated[Path, typer.Option("--repo", metavar="DIR", help="The repository to work on.", show_default="the current folder")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Sandbox = Annotated[
    SandboxKind | None, typer.Option("--sandbox", help="Where the repository's code runs.", show_default="from migrate.toml, else auto")
]


Cluster = Annotated[
    str,
    typer.Option("--cluster", metavar="auto|ADDRESS", help="Work on this Ray cluster. auto is the one that this machine belongs to."),
]


def tools() -> tuple[Progress, Services]:
    """Progress on stderr, and the real services; imported now, so that `--help` is quick."""
    from migrate_agent.agent.loop.wiring import services
    from migrate_agent.agent.runs.progress import Progress
    from migrate_agent.agent.runs.trace import begin

    begin()
    progress = Progress()
    return progress, services(progress.warn)


def relative(module: str, repo: Path) -> str:
    """`FILE:NAME` as it is written in the inventory: an absolute path, or `./`, is meant relative to the repository."""
    path, colon, name = module.partition(":")
    inside = os.path.relpath(path, repo.resolve()) if os.path.isabs(path) else os.path.normpath(path)
    return f"{inside.replace(os.sep, '/')}{colon}{name}"
