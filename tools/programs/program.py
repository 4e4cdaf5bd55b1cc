"""What a program is: the command that runs it, what it reads and writes, and where its rewrite goes."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from migrate_agent.tools.programs.bounds import Bound, with_bounds


@dataclass(frozen=True)
class Program:
    """A training program. `command` is its script (relative to the repository) and its options; `reads` are files beyond those that git tracks.

    `steps` is how many optimizer steps are compared; 0 means all of the run. `folder`, relative to the repository, is where it runs ("": at its root).
    `bounds` are numbers of rounds that are smaller in its runs than in the script.
    """

    command: tuple[str, ...]
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    steps: int = 0
    folder: str = ""
    bounds: tuple[Bound, ...] = ()

    @property
    def source(self) -> str:
        """The script, as a POSIX path relative to the repository."""
        return PurePosixPath(self.command[0]).as_posix()

    def arguments(self, script: str = "", options: Sequence[str] = (), without: str = "") -> dict[str, Any]:
        """What a job is told of it: where it runs, and its command with another script, with further options and `without` one of its own."""
        own = [word for word in self.command[1:] if word != without]
        return {"command": [script or self.command[0], *own, *options], "folder": self.folder}


class NoProgramError(ValueError):
    """A command that does not run a script of the repository. One line that says what to do."""


def parse_program(text: str | Sequence[str], root: Path) -> Program:
    """The program of `python [-m] FILE …`, also of `cd FOLDER && python FILE …`. Raises `NoProgramError`."""
    words = shlex.split(text) if isinstance(text, str) else list(text)
    folder = ""
    if words[:1] == ["cd"] and words[2:3] == ["&&"]:
        folder, words = PurePosixPath(words[1]).as_posix(), words[3:]
    place = (root / folder).resolve()
    if not place.is_dir() or not place.is_relative_to(root.resolve()):
        raise NoProgramError(f"the repository has no folder {folder}")
    folder = place.relative_to(root.resolve()).as_posix()
    script, *options = parse_command(words, place)
    path = (place / script).resolve()
    if not path.is_relative_to(root.resolve()):
        raise NoProgramError(f"{script} lies outside of the repository")
    return Program((path.relative_to(root.resolve()).as_posix(), *options), folder="" if folder == "." else folder)


def parse_command(text: str | Sequence[str], root: Path) -> tuple[str, ...]:
    """Script and options of `python [-m] FILE …`. Raises `NoProgramError`."""
    words = shlex.split(text) if isinstance(text, str) else list(text)
    while words and (PurePosixPath(words[0]).name.startswith("python") or words[0] == "-u" or "=" in words[0]):
        words = words[1:]
    if words[:1] == ["-m"] and len(words) > 1:
        words = [words[1].replace(".", "/") + ".py", *words[2:]]
    if not words or not words[0].endswith(".py"):
        command = text if isinstance(text, str) else shlex.join(text)
        raise NoProgramError(f"no script in {command!r}: write it as `python train.py --option value`")
    path = Path(words[0])
    if path.is_absolute() and not path.resolve().is_relative_to(root.resolve()):
        raise NoProgramError(f"{path} lies outside of the repository")
    script = path.resolve().relative_to(root.resolve()) if path.is_absolute() else path
    if not (root / script).is_file():
        raise NoProgramError(f"the repository has no file {script}")
    return (script.as_posix(), *words[1:])


def stage(root: Path, program: Program, folder: Path) -> Path:
    """A copy of what the program may read: the files that git tracks and those that it names, with the bounds of its run. Gives `folder`."""
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], capture_output=True, check=False)
    names = [name for name in listed.stdout.decode().split("\0") if name]
    names = names or [
        path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file() and ".git" not in path.relative_to(root).parts
    ]
    for name in [*names, *program.reads]:
        source, target = root / name, folder / name
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        elif source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    if program.bounds:
        bound_run(folder / program.source, program)
    return folder


def bound_run(script: Path, program: Program) -> bool:
    """Put the bounds of a program's run into a copy of its script, or of its rewrite; whether each of them stands there just once."""
    text = with_bounds(script.read_text(encoding="utf-8-sig"), program.bounds)
    if text is not None:
        script.write_text(text)
    return text is not None
