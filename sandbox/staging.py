"""The folders of jobs on the host: what goes in, what may come out, and their removal.

    <base>/lock                             held while the sandbox is open; a base whose lock is free was left by a process that died
    <base>/<area>/<job>/inputs/             copies of the inputs
    <base>/<area>/<job>/output/             what the job leaves
    <base>/<area>/<job>/{scratch,home,tmp}/
    <base>/<area>-code/<job>/               a copy of the code that is run, where the backend's workers see no other
    <base>/kept/<job>/                      the output of a job that has ended

An area is what the jobs of one worker see of the base (where the backend can hide the rest); its code they cannot change.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import secrets
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PREFIX = "migrate-agent-sandbox-"
WRITABLE = ("output", "scratch", "home", "tmp")
KEPT = "kept"
DEEPEST = 64
"""How deep folders of the output may be nested: readers that recurse must not run out of stack."""
LEAST_BYTES = 2**16
"""Room that a disk must have not to count as full."""
FILES = 20_000
"""How many files and folders a job may leave."""


@dataclass(frozen=True)
class Stage:
    """The folder of one job. `inputs` are the copies; `code` is the copy of what is run, or the place that it was given as."""

    folder: Path
    inputs: Mapping[str, Path]
    code: Path
    copied: bool = False

    @property
    def folders(self) -> dict[str, Path]:
        """The folders that the job may write to, by name; `output` is the one that is kept."""
        return {name: self.folder / name for name in WRITABLE}

    def remove(self) -> None:
        """Remove all that was made for the job and not moved elsewhere."""
        remove(self.folder)
        if self.copied:
            remove(self.code)


class Base:
    """The folder in which a sandbox makes those of its jobs. Removes, on opening, what sandboxes that died have left beside it.

    `owner` is the user and group that jobs run as, where these differ from this process's.
    """

    def __init__(self, parent: Path | None, owner: tuple[int, int] | None = None) -> None:
        folder = Path(tempfile.gettempdir() if parent is None else parent).resolve()
        prune(folder)
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=folder))
        self._lock = os.open(self.path / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._count = itertools.count(1)
        self._owner = owner

    def area(self, name: str) -> Path:
        """The folder of this area, made where it is not there."""
        path = self.path / name
        path.mkdir(mode=0o700, exist_ok=True)
        if self._owner and name != KEPT:
            os.chown(path, *self._owner)
        return path

    def code(self, area: str) -> Path:
        """The folder for copies of code that the jobs of this area see, made where it is not there."""
        path = self.path / f"{area}-code"
        path.mkdir(mode=0o755, exist_ok=True)
        return path

    def stage(self, area: str, inputs: Mapping[str, Path], code: Path, copied: bool = False) -> Stage:
        """A new job's folder, with copies of its inputs (files or folders), which the job cannot change for others.

        The code is taken where it lies, or `copied`. Raises `OSError`.
        """
        folder = self.area(area) / f"{next(self._count)}-{secrets.token_hex(8)}"
        for name in (*WRITABLE, "inputs"):
            (folder / name).mkdir(parents=True, mode=0o700)
        copies = {name: folder / "inputs" / f"{number}{source.suffix}" for number, (name, source) in enumerate(inputs.items())}
        for name, copy in copies.items():
            _copy(inputs[name], copy)
        if self._owner:
            for path in (str(folder), *(entry.path for entry in walk(folder))):
                os.chown(path, *self._owner, follow_symlinks=False)
        if not copied:
            return Stage(folder, copies, code.resolve())
        return Stage(folder, copies, _copy_code(code, self.code(area) / folder.name), True)

    def keep(self, stage: Stage, limit: int) -> tuple[Path, str]:
        """Move the output of a job that has ended to where no later job sees it, and remove the rest of its folder.

        Returns the output folder, and why it was refused (and emptied), or "".
        """
        destination = self.area(KEPT) / stage.folder.name
        try:
            reason = unfit(stage.folders["output"], limit)
            stage.folders["output"].rename(destination)
        except OSError as error:
            reason = f"the output folder cannot be read: {error.strerror}"
        stage.remove()
        if reason:
            remove(destination)
            destination.mkdir()
        return destination, reason

    def full(self) -> bool:
        """Whether the disk has no room for another file."""
        about = os.statvfs(self.path)
        return about.f_bavail * about.f_frsize < LEAST_BYTES or (about.f_files > 0 and about.f_favail == 0)

    def close(self) -> None:
        """Remove everything."""
        remove(self.path)
        os.close(self._lock)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, copy_function=shutil.copyfile)
    else:
        shutil.copyfile(source, target)
    for entry in walk(target) if source.is_dir() else ():
        os.chmod(entry.path, 0o500 if entry.is_dir() else 0o400)
    target.chmod(0o500 if source.is_dir() else 0o400)


def _copy_code(source: Path, target: Path) -> Path:
    """A copy that whoever runs the jobs may read. Gives `target`."""
    shutil.copytree(source, target, symlinks=True, copy_function=shutil.copyfile)
    for entry in walk(target):
        if not entry.is_symlink():
            os.chmod(entry.path, 0o755 if entry.is_dir() else 0o644)
    target.chmod(0o755)
    return target


def small(folder: Path, most_files: int = 1000, most_bytes: int = 2**25) -> bool:
    """Whether a folder of code may be copied for each job."""
    size = 0
    for count, entry in enumerate(walk(folder)):
        with contextlib.suppress(OSError):
            size += entry.stat(follow_symlinks=False).st_size
        if count >= most_files or size > most_bytes:
            return False
    return True


def walk(folder: Path | str) -> Iterator[os.DirEntry[str]]:
    """All that lies below a folder; follows no link, and leaves out what cannot be read. A folder comes before what is in it.

    Not `os.walk`, which recurses: a job may nest folders deeper than Python's stack.
    """
    pending = [str(folder)]
    while pending:
        path = pending.pop()
        if os.path.islink(path):
            continue  # the job put it where a folder of its own had been
        with contextlib.suppress(OSError), os.scandir(path) as entries:
            for entry in entries:
                yield entry
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)


def prune(parent: Path) -> list[Path]:
    """Remove the folders that sandboxes which died have left in `parent`. Returns them."""
    removed = []
    for path in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            lock = os.open(path / "lock", os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(path)
                removed.append(path)
            finally:
                os.close(lock)
    return removed


def remove(path: Path) -> None:
    """Remove a folder whatever is in it, if it is there. Follows no link."""
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(path)
    if os.path.lexists(path):  # without permissions, or nested too deep for Python
        for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            subprocess.run([*command, "--", str(path)], stdin=subprocess.DEVNULL, capture_output=True, check=False)


def unfit(output: Path, limit: int) -> str:
    """Why this output folder is refused, in one line, or "": it may hold folders and plain files alone, of `limit` bytes together.

    No symbolic or hard links, devices, sockets or pipes, so that reading a file there reads what the job wrote and nothing else.
    Makes all of it readable for the owner. To be called when no process of the job is left. Raises `OSError`.
    """
    if not stat.S_ISDIR(os.lstat(output).st_mode):
        return "the output folder was replaced"
    os.chmod(output, 0o700)
    size = 0
    for count, entry in enumerate(walk(output)):
        about = entry.stat(follow_symlinks=False)
        folder = stat.S_ISDIR(about.st_mode)
        if not folder and (not stat.S_ISREG(about.st_mode) or about.st_nlink != 1):
            return f"{entry.name!r} in the output folder is no plain file"
        os.chmod(entry.path, 0o700 if folder else 0o600)
        if entry.path.count(os.sep) - str(output).count(os.sep) > DEEPEST:
            return f"the output folder holds folders nested deeper than {DEEPEST}"
        size += about.st_size
        if size > limit or count >= FILES:
            return f"the output folder holds more than {limit} bytes or {FILES} files"
    return ""
