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
        str,
        typer.Argument(metavar="FILE:NAME", help="The original module. Its rewrite is the one in the mirror, else what the rules write."),
    ],
    repo: Repo = Path(),
    topology: Annotated[
        list[str] | None,
        typer.Option(
            "--topology", metavar="CHIP:SHAPE", help="Chips to compile for, such as v5e:4x4. Repeatable.", show_default="from migrate.toml"
        ),
    ] = None,
    batch: Annotated[int, typer.Option(min=0, metavar="N", help="Batch size.", show_default="that of the example")] = 0,
    each_chip: Annotated[bool, typer.Option("--each-chip", help="Take --batch for each chip, not for all together.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Ask on which topology the example's `full` configuration fits, split over all devices.")
    ] = False,
    length: Annotated[int, typer.Option(min=0, metavar="N", help="Sequence length.", show_default="that of the example")] = 0,
    dtype: Annotated[DtypeKind | None, typer.Option(help="Use this dtype in place of float32.")] = None,
    program: Annotated[
        list[ProgramKind] | None, typer.Option(help="Compile only this program. Not with --mesh. Repeatable.", show_default="both")
    ] = None,
    init: Annotated[
        str, typer.Option(metavar="ARGUMENTS", help="Arguments of the original's constructor.", show_default="those of the example")
    ] = "",
    call: Annotated[str, typer.Option(metavar="ARGUMENTS", help="Arguments of the call.", show_default="those of the example")] = "",
    mesh: Annotated[
        str, typer.Option(metavar="AXIS=N,…", help="Shard over a mesh with the axes data, fsdp and model, such as data=4,model=2.")
    ] = "",
    kernels: Annotated[bool, typer.Option("--kernels", help="Try the TPU kernels of the kernel library in place of plain JAX.")] = False,
    write: Annotated[
        bool, typer.Option("--write", help="With --mesh or --kernels: write what passes into the rewrite in the working tree.")
    ] = False,
    fit: Annotated[
        bool, typer.Option("--fit", help="Find the largest batch and length that fit into memory, and what saves memory where they do not.")
    ] = False,
    recompile: Annotated[
        bool, typer.Option("--recompile", help="Count the compilations that the recorded calls cause, and propose padding.")
    ] = False,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the result here as JSON.", dir_okay=False)] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write an HTML page here.", dir_okay=False)] = None,
    sandbox: Sandbox = None,
    debug: Debug = False,
) -> None:
    """Compile a unit's rewrite for TPUs; no TPU is needed. It shows memory, FLOPs, bytes and collectives, or the line that is refused."""
    from migrate_agent.agent.tpu.command import TpuOptions
    from migrate_agent.agent.tpu.command import tpu as compile_ahead

    options = TpuOptions(
        topologies=tuple(topology or ()),
        batch=batch,
        each=each_chip,
        full=full,
        length=length,
        dtype=dtype.value if dtype else "",
        programs=tuple(kind.value for kind in program or ProgramKind),
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
    raise typer.Exit(compile_ahead(repo, relative(module, repo), options, services, progress))
