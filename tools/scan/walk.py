"""The Python files of a repository and their text. Nothing is imported or run."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

_OUTPUTS = frozenset({"build", "dist"})
"""Folders that build tools write; a package of that name (with an `__init__.py`) is the user's own."""
_FOREIGN = frozenset({"__pycache__", "node_modules", "site-packages", "__pypackages__"})
MANIFEST, VERIFIED = ".migrate/files.json", ".migrate/verified"
"""What a run wrote: its files, and one JSON file for each verified unit."""
HELPERS = "nnx_layers_jax.py"
"""The helpers of a mirror of top-level files, which stand for no file of the original."""
_TEXTS = (".py", ".pyi", ".md", ".rst", "migrate.toml")
"""What `data_files` leaves out."""
_SHELL = re.compile(r"(?:^|/)(?:[^/]*\.(?:sh|bash|mk|env)|\.env(?:rc)?|(?:GNU)?[Mm]akefile|(?:[^/]*\.)?Dockerfile[^/]*|README(?:\.\w+)?)$")
"""The files that `shell_files` lists."""
_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.quotepath=false")
"""A repository's own configuration may name a monitor program to run: never run it."""


class SourceError(Exception):
    """A file that cannot be read as Python source: one line, with the line number where there is one."""


def read_source(path: Path) -> str:
    """The text of a Python file, decoded as Python does it (byte order mark, coding line, UTF-8), with `\\n` line ends.

    Raises `SourceError` where it is not text in its encoding or cannot be read.
    """
    try:
        data = path.read_bytes()
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SourceError(f"line {line}: cannot decode byte 0x{data[error.start]:02x} as {error.encoding}") from error
    except SyntaxError as error:
        raise SourceError(f"line 1: {error.msg}") from error
    except OSError as error:
        raise SourceError(f"cannot be read: {error.strerror}") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


@dataclass
class Sources(Mapping[str, str]):
    """Relative path → text, read from disk at each look-up. Raises `SourceError` for a file that is no text."""

    root: Path
    paths: tuple[str, ...]

    def __getitem__(self, path: str) -> str:
        return read_source(self.root / path)

    def __iter__(self) -> Iterator[str]:
        return iter(self.paths)

    def __len__(self) -> int:
        return len(self.paths)


def python_files(root: Path, exclude: Sequence[str] = ()) -> tuple[str, ...]:
    """The repository's own `.py` files, as sorted POSIX paths relative to `root`.

    In a git work tree those that git tracks, else all on disk. Left out: hidden folders, virtual environments, build output, installed
    packages, what lies outside `root`, and mirrors made earlier (`x_jax` beside `x`, `model_jax.py` beside `model.py`, and what `.migrate` names).
    `exclude` drops files and folders, by name or by glob pattern.
    """
    tracked = _git_files(root)
    candidates = sorted(_disk_files(root) if tracked is None else tracked)
    environments: dict[PurePosixPath, bool] = {}
    own = [path for path in candidates if _is_own(root, PurePosixPath(path), environments)]
    return tuple(path for path in _without_mirrors(root, own) if not matches(path, exclude))


def mirror_files(root: Path) -> tuple[str, ...]:
    """The `.py` files of mirrors made earlier, which `python_files` leaves out, as sorted POSIX paths; those not yet tracked too."""
    tracked = _git_files(root, "--cached", "--others", "--exclude-standard")
    candidates = sorted(_disk_files(root) if tracked is None else tracked)
    environments: dict[PurePosixPath, bool] = {}
    own = [path for path in candidates if _is_own(root, PurePosixPath(path), environments)]
    return tuple(sorted(set(own).difference(_without_mirrors(root, own))))


def data_files(root: Path) -> tuple[str, ...]:
    """The files that are no Python and no text for people, which code may read: those that git tracks, else all on disk but hidden ones."""
    tracked = _git_files(root, pattern="*")
    candidates = sorted(_disk_files(root, "") if tracked is None else tracked)
    return tuple(path for path in candidates if not path.endswith(_TEXTS) and not path.startswith(".") and (root / path).is_file())


def shell_files(root: Path) -> tuple[str, ...]:
    """The shell scripts, make files, container files and READMEs: those that git tracks, else all on disk."""
    tracked = _git_files(root, pattern="*")
    candidates = sorted(_disk_files(root, "") if tracked is None else tracked)
    return tuple(path for path in candidates if _SHELL.search(path) and (root / path).is_file() and not (root / path).is_symlink())


def _git_files(root: Path, *options: str, pattern: str = "*.py") -> list[str] | None:
    """The files (`.py` ones, else of the pattern) that git tracks below `root`; `None` without git, or where `root` is an untracked folder in another work tree."""
    try:
        top = subprocess.run([*_GIT, "rev-parse", "--show-toplevel"], cwd=root, capture_output=True, check=True)
        listed = subprocess.run([*_GIT, "ls-files", "-z", *options, "--", pattern], cwd=root, capture_output=True, check=True)
    except (subprocess.CalledProcessError, FileNotFoundError):
        return None
    paths = list(dict.fromkeys(os.fsdecode(name) for name in listed.stdout.split(b"\0") if name))
    is_top = Path(os.fsdecode(top.stdout.removesuffix(b"\n"))).resolve() == root.resolve()
    return paths if paths or is_top else None


def _disk_files(root: Path, suffix: str = ".py") -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _FOREIGN]
        for name in names:
            if name.endswith(suffix):
                yield Path(folder, name).relative_to(root).as_posix()


def _is_own(root: Path, path: PurePosixPath, environments: dict[PurePosixPath, bool]) -> bool:
    """Whether a file is on disk, within `root`, and in no folder that holds other than the repository's own source."""
    disk = root / path
    # git may list a deleted file, and a link may lead out of the repository.
    if not disk.is_file() or (disk.is_symlink() and not disk.resolve().is_relative_to(root.resolve())):
        return False
    for folder in path.parents[:-1]:
        if folder not in environments:
            environments[folder] = _is_foreign(root / folder)
        if environments[folder]:
            return False
    return True


def _is_foreign(folder: Path) -> bool:
    name = folder.name
    if name.startswith(".") or name in _FOREIGN or name.endswith(".egg-info"):
        return True
    if name in _OUTPUTS and not (folder / "__init__.py").exists():
        return True
    return (folder / "pyvenv.cfg").exists() or (folder / "conda-meta").is_dir()


def _without_mirrors(root: Path, paths: Iterable[str]) -> list[str]:
    everything = [PurePosixPath(path) for path in paths]
    entries = set(everything).union(*(path.parents for path in everything)) if everything else set()
    written = _written_files(root)
    return [
        str(path)
        for path in everything
        if str(path) not in written and not any(_is_mirror(entry, entries) for entry in (path, *path.parents[:-1]))
    ]


def _is_mirror(entry: PurePosixPath, entries: set[PurePosixPath]) -> bool:
    stem = entry.name.removesuffix(".py")
    if not stem.endswith("_jax"):
        return False
    return entry.name == HELPERS or entry.with_name(stem.removesuffix("_jax") + entry.name[len(stem) :]) in entries


def _written_files(root: Path) -> set[str]:
    """What `.migrate` names as written by a run: also mirrors of installed packages, and of originals that are gone since."""
    documents = [_json_object(file) for file in (root / VERIFIED).rglob("*.json")]
    ports = (key.partition(":")[0] for unit in documents for key in (unit.get("target"), *unit.get("port", ())) if isinstance(key, str))
    return {path for path in (*_json_object(root / MANIFEST), *ports) if any(Path(part).stem.endswith("_jax") for part in Path(path).parts)}


def _json_object(file: Path) -> dict[str, Any]:
    """What is no JSON object names nothing: the commands that need the file say so."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def matches(path: str, patterns: Sequence[str]) -> bool:
    """Whether a file is one of the files, lies in one of the folders, or fits one of the glob patterns."""
    for raw in patterns:
        pattern = str(PurePosixPath(raw))
        if pattern == "." or path == pattern or path.startswith(pattern + "/") or fnmatch(path, pattern) or fnmatch(path, pattern + "/*"):
            return True
    return False
