"""The command lines of `check` and `weights`, which work on ports that are there already."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from migrate_agent.agent.commands.options import Cluster, Debug, Repo, Sandbox, relative, tools
from migrate_agent.agent.config.errors import UsageError


class Framework(StrEnum):
    """Whose names and layout weights are converted to."""

    jax = "jax"
    torch = "torch"


def check(
    repo: Repo = Path(),
    module: Annotated[list[str] | None, typer.Option("--module", metavar="FILE[:NAME]", help="Check only this unit. Repeatable.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Verify unchanged ports again, too.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="Only list what changed. No code runs.")] = False,
    versions: Annotated[bool, typer.Option("--versions", help="Count another version of torch, jax and so on as a change.")] = False,
    update: Annotated[bool, typer.Option("--update", help="Record under .migrate what was verified again and matches.")] = False,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the result here as JSON.", dir_okay=False)] = None,
    sandbox: Sandbox = None,
    cluster: Cluster = "",
    debug: Debug = False,
) -> None:
    """Verify again each port that changed, or whose original changed, since it was verified. No code runs where nothing changed."""
    from migrate_agent.agent.commands.check import CheckOptions
    from migrate_agent.agent.commands.check import check as compare

    modules = tuple(relative(text, repo) for text in module or ())
    options = CheckOptions(modules, everything, listing, versions, update, report, sandbox.value if sandbox else "", cluster)
    progress, services = tools()
    raise typer.Exit(compare(repo, options, services, progress))


def weights(
    module: Annotated[
        str,
        typer.Argument(metavar="FILE[:NAME]", help="The original module, or a program by its file. Its port must be in the working tree."),
    ],
    checkpoint: Annotated[
        Path, typer.Argument(metavar="CHECKPOINT", help="A .pt, .pth, .bin or .safetensors file, an index of shards, or a folder with one.")
    ],
    options: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- OPTION…]", help="Of a program, those with which it goes on from the checkpoint.", show_default="none"),
    ] = None,
    repo: Repo = Path(),
    output: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Write the result here.", show_default="<checkpoint>_jax.safetensors")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Compare only. Nothing is written.")] = False,
    to: Annotated[Framework, typer.Option(help="Framework to convert to. torch converts a checkpoint of the port back.")] = Framework.jax,
    init: Annotated[
        str | None,
        typer.Option(metavar="ARGUMENTS", help="Arguments of the original's constructor.", show_default="those of the example"),
    ] = None,
    setup: Annotated[str, typer.Option(metavar="CODE", help="Statements to run before --init, such as imports.")] = "",
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="PATTERN", help="Leave out names in the checkpoint that match. Repeatable.")
    ] = None,
    sandbox: Sandbox = None,
    debug: Debug = False,
) -> None:
    """Convert a checkpoint of the original for the port, or back. It shows which names and shapes fit."""
    from migrate_agent.agent.commands.weights import WeightsOptions
    from migrate_agent.agent.commands.weights import weights as convert
    from migrate_agent.agent.commands.weights_program import weights_of_program

    progress, services = tools()
    settings = WeightsOptions(output, check, to.value, init, setup, tuple(ignore or ()), sandbox.value if sandbox else "")
    if module.endswith(".py"):
        raise typer.Exit(weights_of_program(repo, relative(module, repo), checkpoint, options or [], settings, services, progress))
    if options:
        raise UsageError(f"{options[0]}: only a program has options of its own")
    raise typer.Exit(convert(repo, relative(module, repo), checkpoint, settings, services, progress))
