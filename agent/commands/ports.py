"""The command lines of `check` and `weights`, which work on ports that are there already."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from migrate_agent.agent.commands.options import Debug, Repo, Sandbox, relative, tools


class Framework(StrEnum):
    """Whose names and layout weights are converted to."""

    jax = "jax"
    torch = "torch"


def check(
    repo: Repo = Path(),
    module: Annotated[list[str] | None, typer.Option("--module", metavar="FILE[:NAME]", help="Only these units. Repeatable.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Verify again what has not changed, too.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="Say what changed; run no code.")] = False,
    versions: Annotated[bool, typer.Option("--versions", help="Another version of torch, jax, ... is a change, too.")] = False,
    update: Annotated[bool, typer.Option("--update", help="Note under .migrate what was verified again and matches.")] = False,
    report: Annotated[Path | None, typer.Option(help="Write the result here as JSON.", dir_okay=False)] = None,
    sandbox: Sandbox = None,
    debug: Debug = False,
) -> None:
    """Verify again the ports whose original, or own text, changed since they were verified. Runs no code where nothing did."""
    from migrate_agent.agent.commands.check import Asked
    from migrate_agent.agent.commands.check import check as compare

    modules = tuple(relative(text, repo) for text in module or ())
    asked = Asked(modules, everything, listing, versions, update, report, sandbox.value if sandbox else "")
    progress, services = tools()
    raise typer.Exit(compare(repo, asked, services, progress))


def weights(
    module: Annotated[str, typer.Argument(metavar="FILE:NAME", help="The original; its port must be in the working tree.")],
    checkpoint: Annotated[
        Path, typer.Argument(metavar="CHECKPOINT", help=".pt, .pth, .bin, .safetensors, an index of shards, or a folder with one.")
    ],
    repo: Repo = Path(),
    output: Annotated[Path | None, typer.Option(help="Write here.", show_default="CHECKPOINT's name and _jax.safetensors")] = None,
    check: Annotated[bool, typer.Option("--check", help="Compare; write nothing.")] = False,
    to: Annotated[Framework, typer.Option(help="torch: CHECKPOINT is the port's, and is converted back.")] = Framework.jax,
    init: Annotated[
        str | None,
        typer.Option(metavar="ARGUMENTS", help="The constructor's arguments, in the original's names.", show_default="the unit's example"),
    ] = None,
    setup: Annotated[str, typer.Option(metavar="CODE", help="Statements that --init needs, such as imports.")] = "",
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="PATTERN", help="Names in the checkpoint that the port does not take. Repeatable.")
    ] = None,
    sandbox: Sandbox = None,
    debug: Debug = False,
) -> None:
    """Convert a checkpoint of the original to the port's names and layouts, or back, and show what fits."""
    from migrate_agent.agent.commands.weights import Asked
    from migrate_agent.agent.commands.weights import weights as convert

    asked = Asked(output, check, to.value, init, setup, tuple(ignore or ()), sandbox.value if sandbox else "")
    progress, services = tools()
    raise typer.Exit(convert(repo, relative(module, repo), checkpoint, asked, services, progress))
