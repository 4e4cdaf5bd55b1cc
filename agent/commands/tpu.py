"""The command line of `tpu`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from migrate_agent.agent.commands.options import Debug, Repo, Sandbox, relative, tools


class DtypeKind(StrEnum):
    """What floats may be in place of float32."""

    bf16 = "bf16"


class ProgramKind(StrEnum):
    """What is compiled."""

    forward = "forward"
    train = "train"


def tpu(
    module: Annotated[
        str, typer.Argument(metavar="FILE:NAME", help="The original; its rewrite is the mirror's, else what the rules write.")
    ],
    repo: Repo = Path(),
    topology: Annotated[
        list[str] | None,
        typer.Option("--topology", metavar="CHIP:SHAPE", help="Such as v5e:4x4. Repeatable.", show_default="from migrate.toml"),
    ] = None,
    batch: Annotated[int, typer.Option(min=0, metavar="N", help="In place of the example's.")] = 0,
    each: Annotated[bool, typer.Option("--each-chip", help="--batch is that of each chip, not of all together.")] = False,
    length: Annotated[int, typer.Option(min=0, metavar="N", help="Of the sequence, in place of the example's.")] = 0,
    dtype: Annotated[DtypeKind | None, typer.Option(help="What floats are in place of float32.")] = None,
    program: Annotated[
        list[ProgramKind] | None, typer.Option(help="Only this one, without --mesh. Repeatable.", show_default="both")
    ] = None,
    init: Annotated[str, typer.Option(metavar="TEXT", help="Constructor's arguments, in place of the example's.")] = "",
    call: Annotated[str, typer.Option(metavar="TEXT", help="The call's arguments, in place of the example's.")] = "",
    mesh: Annotated[str, typer.Option(metavar="AXIS=N,…", help="Shard over a mesh of data, fsdp and model, such as data=4,model=2.")] = "",
    kernels: Annotated[bool, typer.Option("--kernels", help="Try the kernel library's TPU kernels in the place of plain JAX.")] = False,
    write: Annotated[
        bool, typer.Option("--write", help="With --mesh or --kernels: write what holds into the rewrite in the working tree.")
    ] = False,
    fit: Annotated[
        bool, typer.Option("--fit", help="Find the largest batch and length that fit, and what helps where the size does not.")
    ] = False,
    recompile: Annotated[
        bool, typer.Option("--recompile", help="Tell what the calls that were seen cost in compilations, and pad.")
    ] = False,
    report: Annotated[Path | None, typer.Option(help="Write what was found here as JSON.", dir_okay=False)] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page here.", dir_okay=False)] = None,
    sandbox: Sandbox = None,
    debug: Debug = False,
) -> None:
    """Compile a unit's rewrite for TPUs without one: memory, FLOPs, bytes, collectives, or what the compiler refuses and on which line."""
    from migrate_agent.agent.tpu.command import Asked
    from migrate_agent.agent.tpu.command import tpu as compile_ahead

    asked = Asked(
        topologies=tuple(topology or ()),
        batch=batch,
        each=each,
        length=length,
        dtype=dtype.value if dtype else "",
        programs=tuple(each.value for each in program or ProgramKind),
        init=init,
        call=call,
        mesh=mesh,
        kernels=kernels,
        write=write,
        fit=fit,
        recompile=recompile,
        report=report,
        page=html,
        sandbox=sandbox.value if sandbox else "",
    )
    progress, services = tools()
    raise typer.Exit(compile_ahead(repo, relative(module, repo), asked, services, progress))
