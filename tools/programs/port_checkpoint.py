"""A training checkpoint of the original as one that the rewrite goes on from."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.checkpoint.files import CheckpointError
from migrate_agent.tools.programs.checkpoint_jobs import CHECKPOINT
from migrate_agent.tools.programs.program import Program
from migrate_agent.tools.programs.torch_checkpoint import read_tree
from migrate_agent.tools.programs.torch_side import TENSORS, TREE
from migrate_agent.tools.types import Job, Limits, Run

JOBS = "migrate_agent.tools.programs.checkpoint_jobs:"


def port_checkpoint(
    program: Program,
    roots: tuple[Path, Path],
    target: str,
    checkpoint: Path,
    output: Path,
    sandbox: Sandbox,
    folder: Path,
    limits: Limits,
    tell: Callable[[str], None],
) -> None:
    """Write `checkpoint` to the folder `output` as `target` saves and reads it.

    `roots` hold the original and the rewrite; the program's options are those with which both go on from the checkpoint. Raises `CheckpointError`
    with one line.
    """
    tell("reading the checkpoint")
    read = read_tree(checkpoint, sandbox, folder / "read", limits)
    tell("running the original up to its first step")
    run = sandbox.run(Job("original", f"{JOBS}constructed_optimizers", roots[0], program.arguments(), {}, limits))
    rows = _result(run, program.source)["optimizers"]
    sandbox.release(run)
    tell("running the rewrite up to its first step")
    arguments = {**program.arguments(target), "optimizers": rows}
    run = sandbox.run(
        Job("candidate", f"{JOBS}converted_checkpoint", roots[1], arguments, {"tree": read / TREE, "tensors": read / TENSORS}, limits)
    )
    try:
        if error := _result(run, target).get("error"):
            raise CheckpointError(f"{checkpoint}: {error}")
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(run.output / CHECKPOINT, output)
    finally:
        sandbox.release(run)


def _result(run: Run, script: str) -> Mapping[str, Any]:
    if run.status != "ok" or not isinstance(run.result, dict):
        raise CheckpointError(f"{script} does not run with these options: {run.error or run.status}")
    return run.result
