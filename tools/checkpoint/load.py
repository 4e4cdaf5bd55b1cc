"""Reads the two inputs of a match: a checkpoint, and the entries of a port. Code and pickles of others run in the sandbox."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.checkpoint.files import CheckpointError, Tensor, is_safetensors, read_tensors, shard_files
from migrate_agent.tools.checkpoint.matching import Entry, Group
from migrate_agent.tools.types import Example, Job, Limits, Side, SourceFile, Unit

READ = "migrate_agent.tools.checkpoint.torch_side:read"
DESCRIBE = "migrate_agent.tools.checkpoint.jax_side:describe"
TENSORS = "tensors.safetensors"


def load(path: Path, sandbox: Sandbox, folder: Path, limits: Limits) -> tuple[Group, ...]:
    """The dictionaries of tensors in a checkpoint: safetensors, or what `torch.save` wrote; one file, an index of several, or a folder.

    Copies of torch's tensors go to `folder`. Raises `CheckpointError` with one line where there is nothing to load.
    """
    files = shard_files(path)
    if all(is_safetensors(file) for file in files):
        return (Group((), read_tensors(files)),)
    merged: dict[tuple[str, ...], dict[str, Tensor]] = {}
    for number, file in enumerate(files):
        for group in _read(file, sandbox, folder / str(number), limits):
            merged.setdefault(group.path, {}).update(group.tensors)
    return tuple(Group(path_in_file, group_tensors) for path_in_file, group_tensors in merged.items())


def _read(file: Path, sandbox: Sandbox, folder: Path, limits: Limits) -> list[Group]:
    """Read one of torch's files, by a job that sees this file alone."""
    empty = folder / "empty"
    empty.mkdir(parents=True)
    size = file.stat().st_size
    # The pickle, its tensors, their contiguous copies and the written file are there at the same
    # time.
    wide = replace(limits, memory_bytes=limits.memory_bytes + 4 * size, file_bytes=limits.file_bytes + 4 * size)
    run = sandbox.run(Job("original", READ, empty, {}, {"checkpoint": file}, wide))
    try:
        if run.status != "ok" or not isinstance(run.result, dict):
            raise CheckpointError(f"{file} could not be read: {run.error or run.status}")
        if run.result.get("error"):
            raise CheckpointError(f"{file}: {run.result['error']}")
        shutil.copyfile(run.output / TENSORS, folder / TENSORS, follow_symlinks=False)
        groups = run.result["groups"]
    finally:
        sandbox.release(run)
    stored = read_tensors((folder / TENSORS,))
    return [Group(tuple(group["path"]), {name: stored[key] for name, key in group["names"].items()}) for group in groups]


def describe(
    unit: Unit,
    file: SourceFile,
    examples: Sequence[Example],
    root: Path,
    sandbox: Sandbox,
    limits: Limits,
    side: Side = "candidate",
) -> list[list[Entry] | str]:
    """For each way to construct the port (texts in the mirror's names), its entries, or one line on why it cannot be constructed."""
    texts = [{"setup": example.setup, "init": example.init} for example in examples]
    arguments = {"module": file.target_module, "name": unit.name, "examples": texts}
    run = sandbox.run(Job(side, DESCRIBE, root / file.import_root, arguments, {}, limits))
    try:
        if run.status != "ok" or not isinstance(run.result, dict):
            raise CheckpointError(f"{unit.target}:{unit.name} cannot be built: {run.error or run.status}")
        return [_entries(built) for built in run.result["built"]]
    finally:
        sandbox.release(run)


def _entries(built: Mapping[str, Any]) -> list[Entry] | str:
    if "error" in built:
        return str(built["error"])
    return [_entry(row) for row in built["entries"]]


def _entry(row: Mapping[str, Any]) -> Entry:
    """An entry from the result of the port's process, which may be anything. Raises `CheckpointError` on an invalid one."""
    shape, axes = tuple(map(int, row["shape"])), None if row["axes"] is None else tuple(map(int, row["axes"]))
    if axes is not None and sorted(axes) != list(range(len(shape))):
        raise CheckpointError(f"{row['name']}: {axes} is no order of its axes")
    return Entry(str(row["name"]), str(row["path"]), shape, axes, str(row["dtype"]), tuple(map(int, row["index"])))
