"""How both sides run a program: in a copy of its repository, with a steady clock, and with what it prints noted."""

from __future__ import annotations

import os
import random
import runpy
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from migrate_agent.tools.programs.judge.contract import StopProgramError, Trace

WORK = "work"
"""Folder of the output in which the program runs: a copy of its repository."""
MOST_LINES = 5_000


class Lines:
    """A stream that notes the lines of a program and passes them on."""

    def __init__(self, trace: Trace, stream: Any) -> None:
        self._trace, self._stream, self._rest = trace, stream, ""

    def write(self, text: str) -> int:
        """Note what completes a line."""
        *whole, self._rest = (self._rest + text).split("\n")
        # A progress bar writes one line over and over; what stays of it is the last.
        self._trace.lines += [line.rpartition("\r")[2] for line in whole][: MOST_LINES - len(self._trace.lines)]
        self._stream.write(text)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def program_folder(output: Path, arguments: Mapping[str, Any]) -> Iterator[Path]:
    """A copy of the repository to run in, as `Program.arguments` say: the folder that the program runs in becomes the current one, and the
    script's the first to import from. The copy is `output / WORK`. Raises `OutsideError` where the program writes elsewhere by a relative path.
    """
    command: list[str] = arguments["command"]
    work = output / WORK
    shutil.copytree(sys.path[0] or ".", work, symlinks=True, ignore=shutil.ignore_patterns(".git", "__pycache__"))
    for folder, _, names in os.walk(work):
        os.chmod(folder, 0o755)
        for name in names:
            if not (Path(folder) / name).is_symlink():
                os.chmod(Path(folder) / name, 0o644)
    os.chdir(work / arguments["folder"])
    script = work / command[0]
    sys.path[0] = str(script.parent)
    # Packages of the repository that its owner has installed from there.
    sys.path += [str(folder) for folder in (work, work / "src") if folder.is_dir() and folder != script.parent]
    sys.argv = [os.path.relpath(script), *command[1:]]
    with _writing_inside(work):
        given = {path.name for path in output.iterdir()}
        yield script
        # Not all that writes tells Python's hooks.
        if strays := sorted(path.name for path in output.iterdir() if path.name not in given):
            raise OutsideError(f"../{strays[0]}")


class OutsideError(RuntimeError):
    """A program that writes outside of its repository."""

    def __init__(self, path: str) -> None:
        super().__init__(f"the program writes outside of its repository: {path}")


@contextmanager
def _writing_inside(work: Path) -> Iterator[None]:
    """A context in which a relative path that leaves the folder is refused as a file to write: `OutsideError`. Sandboxes differ in what they keep out."""
    active = [True]

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if not active[0] or event not in ("open", "os.mkdir", "os.rename"):
            return
        path = arguments[1] if event == "os.rename" else arguments[0]
        if not is_writing(*arguments[1:]) if event == "open" else arguments[-1] != -1:
            # It is read, or relative to an open folder.
            return
        if isinstance(path, (str, bytes, os.PathLike)) and not os.path.isabs(name := os.fsdecode(path)):
            folder = os.path.realpath(os.path.dirname(name) or ".")
            if os.path.commonpath([folder, work]) != str(work) and not folder.startswith(("/dev", "/proc")):
                raise OutsideError(name)

    work = Path(os.path.realpath(work))
    sys.addaudithook(hear)
    try:
        yield
    finally:
        active[0] = False


def is_writing(mode: Any, flags: Any) -> bool:
    """Whether a file is opened to be written, by what Python's `open` event says of it."""
    return any(letter in mode for letter in "wax+") if isinstance(mode, str) else bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def written(work: Path, before: frozenset[str]) -> list[str]:
    """Files of the folder that were not there before."""
    return sorted(files_in(work) - before)


def files_in(work: Path) -> frozenset[str]:
    """Files of a folder, as relative POSIX paths."""
    return frozenset(path.relative_to(work).as_posix() for path in work.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def noting(own: Callable[..., None], objects: list[Any]) -> Callable[..., None]:
    """A constructor that is `own`, and appends what it constructs, once, to `objects`."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        own(self, *args, **kwargs)
        if all(one is not self for one in objects):
            objects.append(self)

    return __init__


def seed_host_streams() -> None:
    """Let the streams of Python and NumPy begin alike on both sides, where the program does not seed them. Call it right before the script.

    Generators that it, or an environment, makes with `None` for a seed get the numbers from 0 on.
    """
    random.seed(0)
    np.random.seed(0)
    namespace: Any = np.random
    numbers = count()
    namespace.SeedSequence = _numbered(namespace.SeedSequence, numbers, bare=False)
    namespace.default_rng = _numbered(namespace.default_rng, numbers, bare=True)


def _numbered(own: Callable[..., Any], numbers: Iterator[int], bare: bool) -> Callable[..., Any]:
    """A maker of generators that gives one without a seed the next number; `bare`: one without any argument too."""

    def make(*args: Any, **kwargs: Any) -> Any:
        unseeded = not kwargs and (args == (None,) or (bare and not args))
        return own(next(numbers)) if unseeded else own(*args, **kwargs)

    return make


def run_script(script: Path, trace: Trace) -> None:
    """Run a script as `python FILE` does. Leaving with status 0 is an ordinary end; raises `RuntimeError` for another status."""
    try:
        runpy.run_path(str(script), run_name="__main__")
    except StopProgramError:
        return
    except SystemExit as error:
        if error.code not in (None, 0):
            raise RuntimeError(f"the program left with status {error.code}") from error
    except Exception:
        # What ends a compiled step from within arrives as an error of the runtime.
        if not trace.done:
            raise


@contextmanager
def printing(trace: Trace) -> Iterator[None]:
    """A context that notes printed lines."""
    stdout = sys.stdout
    sys.stdout = Lines(trace, stdout)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stdout = stdout
