"""`migrate-agent pr`: the options, and how the command speaks. What it does is in `agent.pr.command`, imported when it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_agent.agent.commands.options import Debug, Repo
from migrate_agent.agent.config.secrets import redacted

if TYPE_CHECKING:
    from migrate_agent.agent.pr.command import Options


def pr(
    repo: Repo = Path(),
    single: Annotated[
        bool,
        typer.Option("--single/--stack", help="One request for all units, or a stack: one for each unit, on top of the one below."),
    ] = False,
    draft: Annotated[bool, typer.Option("--draft", help="Open the requests as drafts.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be pushed and sent.")] = False,
    label: Annotated[list[str] | None, typer.Option("--label", metavar="NAME", help="Label to add. Repeatable.")] = None,
    reviewer: Annotated[
        list[str] | None,
        typer.Option("--reviewer", metavar="NAME|ORG/TEAM", help="Reviewer to ask. Repeatable.", show_default="from CODEOWNERS"),
    ] = None,
    remote: Annotated[str, typer.Option(metavar="NAME", help="Git remote to push to.")] = "origin",
    forge: Annotated[str, typer.Option(metavar="github|gitlab", help="Kind of server.", show_default="from the remote's address")] = "",
    base_url: Annotated[str, typer.Option(metavar="URL", help="Address of its API.", show_default="from the remote's address")] = "",
    project: Annotated[
        str, typer.Option(metavar="OWNER/NAME", help="Project on the server.", show_default="from the remote's address")
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Push without asking.")] = False,
    debug: Debug = False,
) -> None:
    """Open a pull request for each verified unit of the last run, and bring open ones up to date. It is safe to repeat."""
    from migrate_agent.agent.pr.command import Options
    from migrate_agent.agent.pr.wanted import RequestOptions

    options = RequestOptions(draft, tuple(label or ()), tuple(name.removeprefix("@") for name in reviewer or ()))
    raise typer.Exit(submit_and_print(repo, Options(options, single, dry_run, yes, remote, forge, base_url, project)))


def before_run(repo: Path, yes: bool) -> None:
    """Raises `UserError` where what `run --pr` does at its end cannot be done: a long run should not end with it."""
    from migrate_agent.agent.config.errors import UsageError
    from migrate_agent.agent.pr.command import NOBODY, Options, address_of
    from migrate_agent.agent.repository.git import open_repository

    address_of(open_repository(repo), Options())
    if not yes and not _terminal():
        raise UsageError(f"{NOBODY}: add --yes")


def after_run(repo: Path, yes: bool) -> int:
    """What `run --pr` does at its end: `pr` with its defaults."""
    from migrate_agent.agent.pr.command import Options

    return submit_and_print(repo, Options(yes=yes))


def submit_and_print(repo: Path, options: Options) -> int:
    """Run the command; results go to stdout, progress to stderr, the question to a terminal only."""
    from migrate_agent.agent.pr.command import Talk, submit
    from migrate_agent.agent.runs.progress import Progress, stdout

    progress = Progress()

    def show(line: str) -> None:
        stdout().print(redacted(line), markup=False, soft_wrap=True)

    return submit(repo, options, Talk(progress.note, show, progress.warn, typer.confirm if _terminal() else None))


def _terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
