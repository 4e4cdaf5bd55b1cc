"""Folders and tasks as bytes: a path below a folder that travels is that below the folder's copy on the other side."""

from __future__ import annotations

import copyreg
import hashlib
import io
import os
import pickle
import shutil
import tarfile
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any

LEFT_OUT = frozenset({"__pycache__", "node_modules", "site-packages"})
KEPT = 24 * 3600.0
"""Seconds after its last use that a folder stays on a node."""


def pack(folder: Path) -> bytes:
    """The files of a folder, without hidden ones, virtual environments and caches. Equal folders give equal bytes."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for parent, folders, names in os.walk(folder):
            folders[:] = sorted(name for name in folders if _travels(Path(parent, name)))
            for name in sorted(names):
                path = Path(parent, name)
                member = archive.gettarinfo(path, path.relative_to(folder).as_posix())
                member.mtime, member.uid, member.gid, member.uname, member.gname = 0, 0, 0, "", ""
                if member.isfile():
                    with path.open("rb") as content:
                        archive.addfile(member, content)
                elif member.issym():
                    archive.addfile(member)
    return stream.getvalue()


def _travels(folder: Path) -> bool:
    return not (folder.name.startswith(".") or folder.name in LEFT_OUT or (folder / "pyvenv.cfg").exists())


def unpack(content: bytes, folder: Path) -> None:
    """Put the files of `pack` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        archive.extractall(folder, filter="data")


def unpacked(content: bytes, home: Path) -> Path:
    """The folder below `home` with these files, which is made once for all processes of a machine. What was not used for a day is removed.

    Raises `PermissionError` where `home` belongs to somebody else, who could have put other files there.
    """
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    if home.stat().st_uid != os.getuid():
        raise PermissionError(f"{home} belongs to another user")
    folder = home / hashlib.sha256(content).hexdigest()
    if not folder.exists():
        _forget(home)
        fresh = Path(tempfile.mkdtemp(dir=home))
        unpack(content, fresh)
        try:
            fresh.rename(folder)
        except OSError:  # another process was first
            shutil.rmtree(fresh, ignore_errors=True)
    os.utime(folder)
    return folder


def _forget(home: Path) -> None:
    for folder in home.iterdir():
        if time.time() - folder.stat().st_mtime > KEPT:
            shutil.rmtree(folder, ignore_errors=True)


def _read_only(mapping: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(mapping)


class _Pickler(pickle.Pickler):
    dispatch_table = copyreg.dispatch_table | {MappingProxyType: lambda mapping: (_read_only, (dict(mapping),))}

    def __init__(self, stream: io.BytesIO, trees: Sequence[Path]) -> None:
        super().__init__(stream)
        self.trees = trees

    def persistent_id(self, obj: Any) -> tuple[int, str] | None:
        if isinstance(obj, Path):
            for number, tree in enumerate(self.trees):
                if obj.is_relative_to(tree):
                    return number, obj.relative_to(tree).as_posix()
        return None


class _Unpickler(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO, trees: Sequence[Path]) -> None:
        super().__init__(stream)
        self.trees = trees

    def persistent_load(self, pid: tuple[int, str]) -> Path:
        number, inside = pid
        return self.trees[number] / PurePath(inside)


def dumps(value: Any, trees: Sequence[Path]) -> bytes:
    """A value with the paths below `trees` as those below the folders of the same numbers on the other side."""
    stream = io.BytesIO()
    _Pickler(stream, trees).dump(value)
    return stream.getvalue()


def loads(content: bytes, trees: Sequence[Path]) -> Any:
    """What `dumps` wrote on the other side."""
    return _Unpickler(io.BytesIO(content), trees).load()
