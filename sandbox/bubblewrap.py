"""The bubblewrap backend: the warm worker and its jobs in namespaces of their own, without root and without an engine.

Holds, beyond what the plain process holds: no network; a file system that shows only the system's libraries, the Python environment, the
job's `root` (all read-only) and the worker's own folder; an empty home; no process but the worker's to be seen or signalled; no
capabilities; no user of the host's. On the candidate's side torch is not on the disk. What a worker sees is settled when it starts: a
candidate's code is copied into its sight for each job, so that one worker serves a whole run, and candidates that run at the same time
get workers apart; the original's worker serves the jobs of one `root`. Outputs are moved out of its sight when a job ends. Does **not**
hold: jobs of the original that run at the same time from each other. Limits are the keeper's and rlimits, without a cgroup. Source: bwrap(1).
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from migrate_agent.sandbox.process import Key, ProcessSandbox, area
from migrate_agent.sandbox.view import CPUS, SYSTEM, gpus, packages, python
from migrate_agent.sandbox.worker import REFUSED

PROGRAM = "bwrap"
ISOLATION = (
    "--unshare-all",
    "--die-with-parent",
    "--new-session",
    "--cap-drop",
    "ALL",
    "--uid",
    "65534",
    "--gid",
    "65534",
    "--hostname",
    "sandbox",
)
KERNEL = (
    "/proc/sys",
    "/proc/sysrq-trigger",
    "/proc/irq",
    "/proc/bus",
    "/proc/fs",
    "/proc/acpi",
    "/proc/scsi",
    "/proc/driver",
    "/proc/mtrr",
)
SHARED_MEMORY_BYTES = 256 * 2**20
"""Size of /dev/shm: its pages count as nobody's memory."""


def missing() -> str:
    """Why this backend cannot be used here, or ""."""
    if shutil.which(PROGRAM) is None:
        return "bwrap is not installed (package bubblewrap)"
    probe = subprocess.run([PROGRAM, *_isolation(), "--ro-bind", "/", "/", "true"], capture_output=True, text=True, check=False)
    return "" if probe.returncode == 0 else f"bwrap cannot make namespaces here: {probe.stderr.strip()}"


@functools.cache
def _isolation() -> tuple[str, ...]:
    """What separates the sandbox; further user namespaces are forbidden where this version (0.8 or later) can."""
    usage = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=False)
    extra = ("--unshare-user", "--disable-userns") if "--disable-userns" in usage.stdout + usage.stderr else ()
    return (*ISOLATION, *extra)


class BubblewrapSandbox(ProcessSandbox):
    """Runs jobs in children of warm workers inside bubblewrap. A context manager; safe for `run` from several threads."""

    name = "bubblewrap"
    own_users = True
    shows = True
    shared = ("/dev/shm",)

    def _command(self, key: Key) -> list[str]:
        own = str(self._base.area(area(key)))
        code = key.root or str(self._base.code(area(key)))
        shown = _binds("--ro-bind", [*SYSTEM, CPUS, *python()])
        hidden = [part for path in packages(REFUSED[key.side]) for part in ("--tmpfs", path)]
        devices = _binds("--dev-bind", gpus() if self._device == "gpu" else ())
        empty = ["--proc", "/proc", *_covered(), "--dev", "/dev", *_tmpfs("/dev/shm"), *devices, "--remount-ro", "/dev", "--tmpfs", "/tmp"]
        user = [*_binds("--ro-bind", [code]), *_binds("--bind", [own]), *hidden]
        return [
            PROGRAM,
            *_isolation(),
            *shown,
            *empty,
            *user,
            "--remount-ro",
            "/tmp",
            "--remount-ro",
            "/",
            "--chdir",
            own,
            *super()._command(key),
        ]


def _covered() -> list[str]:
    """bwrap leaves the kernel's settings writable for the owner of the host's, which root's jobs still are, capabilities or not."""
    return _binds("--ro-bind", KERNEL)


def _tmpfs(path: str) -> list[str]:
    return ["--size", str(SHARED_MEMORY_BYTES), "--tmpfs", path]


def _binds(option: str, paths: Iterable[str]) -> list[str]:
    """These paths at their own places; links of the root (`/bin`) as links; what is not there is left out."""
    parts: list[str] = []
    for path in dict.fromkeys(paths):
        if Path(path).is_symlink() and path in SYSTEM:
            parts += ["--symlink", os.readlink(path), path]
        elif Path(path).exists():
            parts += [option, path, path]
    return parts
