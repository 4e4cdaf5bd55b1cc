"""Tensors on disk: safetensors files, single or sharded by an index, read on demand."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  # gives numpy the dtypes that safetensors names
import numpy as np

Array = np.ndarray[Any, Any]
FOLDER_NAMES = ("model.safetensors.index.json", "model.safetensors", "pytorch_model.bin.index.json", "pytorch_model.bin")
"""Names of checkpoint files in a folder; the first that exists is read."""


class CheckpointError(ValueError):
    """A file that holds no checkpoint, or not this one's; one line that says what to do."""


@dataclass(frozen=True)
class Tensor:
    """One tensor of a file: its shape, and dtype as safetensors spells it (`F32`)."""

    file: Path
    key: str
    shape: tuple[int, ...]
    dtype: str

    def read(self) -> Array:
        """Read the array from the file."""
        from safetensors import safe_open

        with safe_open(self.file, framework="numpy") as opened:
            array: Array = opened.get_tensor(self.key)
        return array


def shard_files(path: Path) -> tuple[Path, ...]:
    """The files of a checkpoint: the file itself, or the shards that an index (`*.index.json`) names. A folder is searched for one.

    Raises `CheckpointError` for a missing, empty or invalid file.
    """
    if path.is_dir():
        file = next((path / name for name in FOLDER_NAMES if (path / name).is_file()), None)
        if file is None:
            raise CheckpointError(f"{path} is a folder without {', '.join(FOLDER_NAMES)}: name the file")
        return shard_files(file)
    if not path.is_file():
        raise CheckpointError(f"{path} is not there")
    if path.stat().st_size == 0:
        raise CheckpointError(f"{path} is empty")
    return _shards(path) if path.name.endswith(".json") else (path,)


def _shards(index: Path) -> tuple[Path, ...]:
    try:
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise CheckpointError(f"{index} is no index of a checkpoint: it has no `weight_map` of file names") from None
    # An index comes from elsewhere: `../` in a name must not read other files.
    if not all(isinstance(name, str) and Path(name).name == name for name in names):
        raise CheckpointError(f"{index} names files outside of its folder")
    missing = [name for name in names if not (index.parent / name).is_file()]
    if missing or not names:
        raise CheckpointError(f"{index} names {missing[0] if missing else 'no file'}, which is not there")
    return tuple(index.parent / name for name in names)


def is_safetensors(path: Path) -> bool:
    """Whether a file begins as safetensors do (torch's are zip archives or pickles)."""
    with path.open("rb") as stream:
        head = stream.read(9)
    return len(head) == 9 and head[8:] == b"{" and not head.startswith((b"PK", b"\x80"))


def read_tensors(files: tuple[Path, ...]) -> dict[str, Tensor]:
    """Name → tensor, over all files; reads headers alone. Raises `CheckpointError` for a broken file and for a name in two files."""
    from safetensors import SafetensorError, safe_open

    tensors: dict[str, Tensor] = {}
    for file in files:
        try:
            with safe_open(file, framework="numpy") as opened:
                for key in opened.keys():  # noqa: SIM118  # it is no mapping
                    if key in tensors:
                        raise CheckpointError(f"{key} stands in both {tensors[key].file.name} and {file.name}")
                    part = opened.get_slice(key)
                    tensors[key] = Tensor(file, key, tuple(part.get_shape()), part.get_dtype())
        except SafetensorError as error:
            raise CheckpointError(f"{file} is no safetensors file, or is broken: {str(error).splitlines()[0]}") from None
    return tensors


def save(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write a safetensors file atomically: after a crash the old or the new file exists, whole. Raises `OSError`."""
    from safetensors.numpy import save_file

    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        save_file({name: np.asarray(array, order="C") for name, array in arrays.items()}, temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
