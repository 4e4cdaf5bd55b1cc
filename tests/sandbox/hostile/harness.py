"""Runs one hostile program in a sandbox, and looks afterwards at everything that it might have reached."""

from __future__ import annotations

import ast
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psutil  # type: ignore[import-untyped]

from migrate_agent.sandbox import Sandbox
from migrate_agent.sandbox.staging import remove
from migrate_agent.tests.sandbox.support import marked
from migrate_agent.tools.types import Job, Limits, Run

FIXTURES = Path(__file__).parent / "fixtures"
THEMES = {
    "network": "Network",
    "files": "Files",
    "processes": "Processes, signals, users, namespaces",
    "resources": "Resources",
    "outputs": "Outputs and results",
    "interpreter": "Python itself",
}
CANARY = "canary-e7f1c2"
LIMITS = Limits(seconds=30.0, memory_bytes=600 * 2**20, processes=64, file_bytes=32 * 2**20)
BRIEF = {"loop", "sleep", "stop", "timers", "zombies", "stop_keeper", "fork_chain"}
"""Programs that only time ends."""
BRIEF_SECONDS = 2.0
READING = {"other_outputs"}
"""Programs for which the original's side leaves something to be read."""
ENGINES = ("/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock")


class Program(NamedTuple):
    """A function of `fixtures/<theme>.py`, and what it tries, in words."""

    theme: str
    name: str
    text: str

    @property
    def id(self) -> str:
        return f"{self.theme}-{self.name}"


def programs() -> list[Program]:
    """All hostile programs, from the text of their files: nothing of them is imported here."""
    found = []
    for theme in THEMES:
        for node in ast.parse((FIXTURES / f"{theme}.py").read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                found.append(Program(theme, node.name, ast.get_docstring(node) or ""))
    return found


@contextlib.contextmanager
def _listeners(folder: Path) -> Iterator[tuple[dict[str, Any], list[socket.socket]]]:
    """Arguments that say where the listeners are, and the listeners."""
    with contextlib.ExitStack() as stack:
        kinds = {"tcp": ("127.0.0.1", socket.AF_INET), "tcp6": ("::1", socket.AF_INET6), "udp": ("127.0.0.1", socket.AF_INET)}
        found: dict[str, Any] = {}
        opened = []
        for name, (address, family) in kinds.items():
            opened.append(stack.enter_context(socket.socket(family, socket.SOCK_DGRAM if name == "udp" else socket.SOCK_STREAM)))
            opened[-1].bind((address, 0))
            found[name] = opened[-1].getsockname()[1]
        found["unix"], found["abstract"] = str(folder / "listens"), uuid.uuid4().hex
        for place in (found["unix"], "\0" + found["abstract"]):
            opened.append(stack.enter_context(socket.socket(socket.AF_UNIX)))
            opened[-1].bind(place)
        for each in opened:
            each.setblocking(False)
            if each.type == socket.SOCK_STREAM:
                each.listen()
        yield found, opened


def _reached(listeners: list[socket.socket]) -> bool:
    for each in listeners:
        with contextlib.suppress(BlockingIOError):
            if each.type == socket.SOCK_STREAM:
                each.accept()[0].close()
            else:
                each.recv(1)
            return True
    return False


def _lay(folder: Path) -> Path:
    """A fresh root with the programs, a secret and an input. The root stays the same folder, so that workers stay warm."""
    root = folder / "root"
    root.mkdir(exist_ok=True)
    for path in root.iterdir():
        remove(path)
    for path in FIXTURES.glob("*.py"):
        shutil.copyfile(path, root / path.name)
    for name, text in (("secret", CANARY), ("input", "input")):
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "listens").unlink(missing_ok=True)
    return root


def escapes(program: Program, sandbox: Sandbox, folder: Path) -> list[str]:
    """Run the program and say, in words, all that it got at; empty where it was contained.

    `folder` lies on the host and has a short path; give the same one for all programs of a sandbox.
    """
    marker = f"hostile-{uuid.uuid4().hex}"
    root = _lay(folder)
    with (
        subprocess.Popen([sys.executable, "-S", "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as victim,
        _listeners(folder) as (places, listeners),
    ):
        careful = sandbox.name == "process"
        arguments = {**places, **_facts(folder, root, marker), "careful": careful, "victim": victim.pid, "base": str(folder)}
        leaves = program.name in READING
        other = (
            sandbox.run(Job("original", "aftermath:leave", root, arguments, {}, LIMITS)) if leaves else Run("ok", folder, "/nonexistent")
        )
        limits = Limits(BRIEF_SECONDS, *list(vars(LIMITS).values())[1:]) if program.name in BRIEF else LIMITS
        job = Job(
            "candidate", f"{program.theme}:{program.name}", root, {**arguments, "other": other.result}, {"one": folder / "input"}, limits
        )
        run = sandbox.run(job)
        found = [*_said(run), *_left(run), *(["network reached"] if _reached(listeners) else [])]
        after = sandbox.run(Job("candidate", "aftermath:look", root, arguments, {}, LIMITS))
        found += [f"next job: {after.status} {after.error}"] if after.status != "ok" else [f"next job sees {what}" for what in after.result]
        found += ["victim signalled"] if victim.poll() is not None or psutil.Process(victim.pid).status() == psutil.STATUS_STOPPED else []
        victim.kill()
    found += [f"left process {process.pid}" for process in marked(marker)]
    found += _changed(folder, root)
    for each in (run, after, *([other] if leaves else [])):
        sandbox.release(each)
    _tidy(marker)
    return found


def _facts(folder: Path, root: Path, marker: str) -> dict[str, Any]:
    secret = folder / "secret"
    engine = os.environ.get("DOCKER_HOST", "").removeprefix("unix://")
    return {
        "secret": str(secret),
        "inode": secret.stat().st_ino,
        "canary": CANARY,
        "root": str(root),
        "marker": marker,
        "tables": {path: [os.stat(path).st_dev, os.stat(path).st_ino] for path in ("/etc/passwd", "/etc/hostname", "/etc/hosts")},
        "engine": [path for path in (engine, *ENGINES) if path],
    }


def _said(run: Run) -> list[str]:
    """What the program itself says it reached, and the canary wherever it turns up."""
    texts = f"{run.result} {run.error} {run.traceback} {run.log}"
    said = [f"it says {str(run.result)[:120]!r}"] if run.status == "ok" and run.result != "no" else []
    return said + (["canary came out"] if CANARY in texts else [])


def _left(run: Run) -> list[str]:
    """What lies in the output folder that a careless reader would fall over, and what came back unbounded or unclean."""
    found = []
    size = 0
    for path in run.output.rglob("*"):
        about = path.lstat()
        size += about.st_size
        if path.is_symlink() or not (path.is_file() or path.is_dir()) or (path.is_file() and about.st_nlink != 1):
            found.append(f"odd file {path.name!r} came back")
        elif path.is_file() and CANARY.encode() in path.read_bytes():
            found.append("canary came out in a file")
    found += ["more bytes than allowed came back"] if size > LIMITS.file_bytes else []
    found += ["unbounded log"] if len(run.log) > 2**19 else []
    dirty = [c for c in run.log + run.error + run.traceback if not c.isprintable() and c not in "\n\t"]
    return found + (["terminal escapes came back"] if dirty else [])


def _changed(folder: Path, root: Path) -> list[str]:
    """What is no longer as it was on the host."""
    found = []
    if (folder / "secret").read_text(encoding="utf-8") != CANARY or (folder / "secret").stat().st_nlink != 1:
        found.append("secret changed or linked")
    if (folder / "input").read_text(encoding="utf-8") != "input":
        found.append("input changed")
    names = {path.name: path.read_bytes() for path in root.iterdir() if path.is_file()}
    if names != {path.name: path.read_bytes() for path in FIXTURES.glob("*.py")}:
        found.append("code changed")
    return found


def _tidy(marker: str) -> None:
    """Take away what a program left on the host where nothing held it."""
    for process in marked(marker):
        process.kill()
    for place in ("/dev/shm", "/tmp"):
        Path(place, marker).unlink(missing_ok=True)
