"""Training checkpoints of torch (weights, optimizer, schedule, epoch, best metric), there and back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.checkpoint.files import CheckpointError
from migrate_agent.tools.programs.torch_side import FILE, TENSORS, TREE
from migrate_agent.tools.types import Job, Limits

READ = "migrate_agent.tools.programs.torch_side:read"
WRITE = "migrate_agent.tools.programs.torch_side:write"


class LeftOut(str):
    """Something of a checkpoint that is neither a tensor nor a number, text or container: the name of its type."""


def load_training(path: Path, sandbox: Sandbox, folder: Path, limits: Limits) -> Any:
    """What `torch.save` wrote, with NumPy arrays for tensors and `LeftOut` for objects of other types.

    The file is read in the sandbox, and only as far as `weights_only` allows. Raises `CheckpointError` with one line where it cannot be.
    """
    output = read_tree(path, sandbox, folder, limits)
    # bfloat16 has no type in NumPy; JAX's package brings one, and safetensors finds it there.
    return value_of(json.loads((output / TREE).read_text(encoding="utf-8")), load_file(output / TENSORS))


def read_tree(path: Path, sandbox: Sandbox, folder: Path, limits: Limits) -> Path:
    """The folder with the tree and the tensors of what `torch.save` wrote. Raises `CheckpointError` with one line where it cannot be read."""
    return _run(READ, {"checkpoint": path}, path.stat().st_size, sandbox, folder, limits, (TENSORS, TREE))


def save_training(value: Any, path: Path, sandbox: Sandbox, folder: Path, limits: Limits) -> None:
    """Write a nested value with NumPy arrays as a file that `torch.load` reads, the inverse of `load_training`. Raises `CheckpointError`."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    (folder / TREE).write_text(json.dumps(_node(value, arrays)), encoding="utf-8")
    save_file(arrays, folder / TENSORS)
    size = (folder / TENSORS).stat().st_size
    output = _run(WRITE, {"tree": folder / TREE, "tensors": folder / TENSORS}, size, sandbox, folder / "written", limits, (FILE,))
    shutil.move(output / FILE, path)


def optimizers_in(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Where the states of optimizers lie in a checkpoint, and what they are."""
    yield from _found(value, path, {"state", "param_groups"})


def schedules_in(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Where the states of schedulers lie in a checkpoint, and what they are."""
    yield from _found(value, path, {"last_epoch"})


def updates_so_far(schedule: Mapping[str, Any], steps_per_epoch: int = 1) -> int:
    """How many updates a scheduler has seen: what optax counts. `steps_per_epoch` is that of a scheduler that is stepped once an epoch."""
    return int(schedule["last_epoch"]) * steps_per_epoch


def host_schedule(schedule: Mapping[str, Any], labels: tuple[str, ...] = ("",)) -> dict[str, Any]:
    """The state that the helpers `LambdaLR` and `ReduceLROnPlateau` load; `labels` are those of the groups, in torch's order."""
    names = ("best", "num_bad_epochs", "cooldown_counter", "last_epoch")
    state: dict[str, Any] = {name: schedule[name] for name in names if name in schedule}
    state["last_lrs"] = dict(zip(labels, map(float, schedule["_last_lr"]), strict=True))
    if "base_lrs" in schedule:
        state["base_lrs"] = dict(zip(labels, map(float, schedule["base_lrs"]), strict=True))
    return state


def _found(value: Any, path: tuple[str, ...], keys: set[str]) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    if isinstance(value, Mapping):
        if keys <= value.keys():
            yield path, value
            return
        for key, item in value.items():
            yield from _found(item, (*path, str(key)), keys)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _found(item, (*path, str(i)), keys)


def _run(entry: str, inputs: Mapping[str, Path], size: int, sandbox: Sandbox, folder: Path, limits: Limits, files: tuple[str, ...]) -> Path:
    empty = folder / "empty"
    empty.mkdir(parents=True, exist_ok=True)
    # The pickle, its tensors, their copies and the written file are there at the same time.
    wide = replace(limits, memory_bytes=limits.memory_bytes + 4 * size, file_bytes=limits.file_bytes + 4 * size)
    run = sandbox.run(Job("original", entry, empty, {}, dict(inputs), wide))
    try:
        if run.status != "ok" or not isinstance(run.result, dict):
            raise CheckpointError(f"the checkpoint could not be read or written: {run.error or run.status}")
        if run.result.get("error"):
            raise CheckpointError(f"{next(iter(inputs.values()))}: {run.result['error']}")
        for file in files:
            shutil.copyfile(run.output / file, folder / file, follow_symlinks=False)
    finally:
        sandbox.release(run)
    return folder


def value_of(node: Mapping[str, Any], arrays: Mapping[str, Any]) -> Any:
    """The nested value of a tree in JSON."""
    if "tensor" in node:
        return arrays[node["tensor"]]
    if "dict" in node:
        return {key: value_of(item, arrays) for key, item in node["dict"]}
    if "list" in node:
        return [value_of(item, arrays) for item in node["list"]]
    return LeftOut(node["left_out"]) if "left_out" in node else node["value"]


def _node(value: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> dict[str, Any]:
    if isinstance(value, np.ndarray):
        number = str(len(arrays))
        arrays[number] = np.ascontiguousarray(value).reshape(value.shape)
        return {"tensor": number}
    if isinstance(value, Mapping):
        return {"dict": [[key, _node(item, arrays)] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        return {"list": [_node(item, arrays) for item in value]}
    if isinstance(value, LeftOut) or not (value is None or isinstance(value, (bool, int, float, str))):
        raise CheckpointError(f"{value!r} has no form in a checkpoint")
    return {"value": value}
