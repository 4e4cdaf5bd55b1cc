"""`migrate-agent sandbox build|check|prune`: the engine's images, what works on this machine, and what was left behind."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from migrate_agent.agent.commands.options import Debug
from migrate_agent.agent.config.errors import MissingError
from migrate_agent.sandbox import BACKENDS, SandboxError, missing

app = typer.Typer(help="Build the sandbox's images, see which backend works here, or clean up.", no_args_is_help=True)

PASSED = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
"""Variables of this shell that reach an image's build; the engine keeps none of them in the image."""


@contextlib.contextmanager
def _engine() -> Iterator[Any]:
    from migrate_agent.sandbox import engine

    try:
        with contextlib.closing(engine.connect()) as client:
            yield client
    except SandboxError as error:
        raise MissingError(str(error)) from error


@app.command()
def build(
    base: Annotated[str, typer.Option("--base", metavar="IMAGE", help="Image to build on. `scratch` needs no registry.")] = "scratch",
    packages: Annotated[
        bool, typer.Option("--packages", help="Put torch and JAX into the images. Without it, this environment is mounted read-only.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Build the images of the Docker backend."""
    from migrate_agent.sandbox import engine

    targets = ("original", "candidate") if packages else ("base",)
    arguments = {name: os.environ[name] for name in PASSED if name in os.environ}
    with _engine() as client:
        for name in engine.build(client, base, targets, arguments, typer.echo):
            typer.echo(f"built {name}")


@app.command()
def check(debug: Debug = False) -> None:
    """Show which backends work on this machine, and which one `--sandbox auto` takes."""
    reasons = {kind: missing(kind) for kind in BACKENDS}
    for kind, reason in reasons.items():
        typer.echo(f"{kind:<12}{reason or 'works'}")
    chosen = next((kind for kind, reason in reasons.items() if not reason), "")
    typer.echo(f"{'auto':<12}{chosen or 'nothing works'}")
    if not chosen:
        raise MissingError("no sandbox works on this machine")


@app.command()
def prune(
    folder: Annotated[
        Path | None, typer.Option("--folder", metavar="DIR", help="Folder in which jobs ran.", show_default="the system's temporary folder")
    ] = None,
    debug: Debug = False,
) -> None:
    """Remove containers and folders that killed runs have left."""
    from migrate_agent.sandbox import engine
    from migrate_agent.sandbox.staging import prune as prune_folders

    removed = [str(path) for path in prune_folders(folder or Path(tempfile.gettempdir()))]
    if not missing("docker"):
        with _engine() as client:
            removed += engine.prune(client)
    for name in removed:
        typer.echo(f"removed {name}")
    typer.echo(f"{len(removed)} left behind" if removed else "nothing was left behind")
