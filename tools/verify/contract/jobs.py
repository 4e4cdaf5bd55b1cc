"""Descriptions of jobs: one builder for each side of the sandbox, and what all of them need."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.types import Example, Inventory, Job, Limits, Run, SourceFile, Unit

ROOM = "migrate_agent.tools.verify"


def entry(side: str, function: str) -> str:
    """The entry of a job: `function` is `file:function` in `original/` or `candidate/`."""
    return f"{ROOM}.{side}.{function}"


def original_job(
    function: str, unit: Unit, file: SourceFile, root: Path, limits: Limits, arguments: Mapping[str, Any], inputs: Mapping[str, Path]
) -> Job:
    """A job of the original's side, whose sandbox has torch. `root` is that of the original's repository.

    Where `arguments` name import `roots`, it sees the whole repository, and has these on its path after it.
    """
    named = {"module": file.module, "name": unit.name, **arguments}
    return Job("original", entry("original", function), root / folder_of(file, arguments), named, inputs, limits)


def candidate_job(
    function: str, unit: Unit, file: SourceFile, root: Path, limits: Limits, arguments: Mapping[str, Any], inputs: Mapping[str, Path]
) -> Job:
    """A job of the candidate's side, whose sandbox has no torch. `root` is that of the candidate's tree; `roots` as in `original_job`."""
    named = {"module": file.target_module, "name": unit.name, "kind": unit.kind, **arguments}
    return Job("candidate", entry("candidate", function), root / folder_of(file, arguments), named, inputs, limits)


def folder_of(file: SourceFile, arguments: Mapping[str, Any]) -> str:
    """The folder of the tree that a job's path begins with."""
    return "" if arguments.get("roots") else file.import_root


def importing(file: SourceFile, inventory: Inventory, unit: Unit, examples: Sequence[Example]) -> dict[str, Any]:
    """What a job is told of importing the unit.

    These are `roots`, its own and others where it needs others, the `folder` of the tree that the job sees, and of the original's files `parts`.
    """
    from migrate_agent.tools.import_closure import (  # here alone: the sandbox imports this room without the rewriter
        needed_parts,
        needed_roots,
    )

    others = needed_roots(inventory, unit, examples)
    arguments: dict[str, Any] = {"roots": [root for root in (file.import_root, *others) if root] if others else []}
    folder = folder_of(file, arguments)
    return {**arguments, "folder": folder, "parts": needed_parts(inventory, unit, examples, folder)}


def source_file(inventory: Inventory, unit: Unit) -> SourceFile:
    """The inventory's entry for the unit's file. Raises `KeyError`."""
    for file in inventory.files:
        if file.path == unit.source:
            return file
    raise KeyError(unit.source)


def texts(example: Example, changes: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """An example as JSON, with the changed arguments of its configuration."""
    domain = list(example.domain) if example.domain else None
    row = {"init": example.init, "call": example.call, "setup": example.setup, "train": example.train, "domain": domain}
    row |= {"method": example.method} if example.method else {}
    return {**row, "changes": dict(changes)} if changes else row


def tensor_inputs(examples: Sequence[Example]) -> dict[str, Path]:
    """The recorded tensors as inputs of a job."""
    return {f"tensors{index}": example.tensors for index, example in enumerate(examples) if example.tensors is not None}


def discard(sandbox: Sandbox, run: Run) -> None:
    """Remove a run's files."""
    # A sandbox may give the same run again, or keep its folder in a pool: then only it knows when the files may go.
    release = getattr(sandbox, "release", None)
    if release is not None:
        release(run)
    else:
        shutil.rmtree(run.output, ignore_errors=True)
