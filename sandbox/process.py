"""The plain-process backend: jobs as children of a warm worker of the same user, with limits.

Holds: time, memory, number of processes, file size and disk space; a scrubbed environment; own folders; no torch on the candidate's side;
all processes of a job end with it, daemons included; no network for the candidate's side, and no signals to what watches over a job, as
far as the seccomp filter knows the machine. Does **not** hold: the original's network, and files and processes that the user can reach (so
the originals' outputs too, against a candidate that searches for them).
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import itertools
import json
import os
import secrets
import shutil
import site
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from migrate_agent.sandbox.base import Device, SandboxError, SandboxUnavailable
from migrate_agent.sandbox.child import RESULT_BYTES
from migrate_agent.sandbox.keeper import LENGTH_BYTES, LOG_BYTES, NONCE_BYTES, STARTED
from migrate_agent.sandbox.outcome import genuine, outcome
from migrate_agent.sandbox.staging import KEPT, Base, Stage, remove, small
from migrate_agent.sandbox.zygote import END_SECONDS, Worker, Zygote
from migrate_agent.tools.types import Job, Run, Side

MAX_WORKERS = 6
"""Idle workers beyond this many are ended, the one not used for longest first."""
PASSED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH")
"""All of the host's environment that reaches a job."""
FIXED = {
    "PYTHONHASHSEED": "0",
    "JAX_PLATFORMS": "cpu",
    "CUDA_VISIBLE_DEVICES": "",
    "OPENBLAS_NUM_THREADS": "1",  # it starts its threads when numpy is imported, before the fork
    "MPLBACKEND": "agg",
    **dict.fromkeys(("USER", "LOGNAME"), "sandbox"),  # for `getpass.getuser`: the users of jobs are in no list of users
}
ON_GPU = {"JAX_PLATFORMS": "cuda,cpu", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
"""In place of what keeps jobs on the processor: both sides share the memory of the same accelerator."""
PASSED_ON_GPU = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
START_SECONDS = 300.0
"""How long a worker may take until a job has started; importing torch from a cold disk is slow."""
GRACE_SECONDS = 60.0
"""How long past the job's own limit the host waits for the report before it gives the worker up."""
REQUEST_BYTES = 64 * 2**20
REPORT_BYTES = 8 * (RESULT_BYTES + 2 * LOG_BYTES)


def missing() -> str:
    """Why this backend cannot be used here, or ""."""
    return "" if hasattr(os, "fork") else "this system cannot fork processes"


class Key(NamedTuple):
    """Which jobs share a worker: those of a side, of a `root` that it is shown (None: the code is copied, or all is seen), in a place of
    their own among those that run at the same time."""

    side: Side
    root: str | None = None
    place: int = 0


class ProcessSandbox:
    """Runs jobs in children of one warm worker a side. A context manager; safe for `run` from several threads.

    `threads` is what the numeric libraries may use each; `folder` is where the jobs' folders are made; `device` is `cpu`, or `gpu` where
    jobs may use the machine's accelerators.
    """

    name = "process"
    shared: tuple[str, ...] = ()
    """Folders of the sandbox's own that all jobs of a worker may write to; emptied after a job."""
    own_users = False
    """Whether the kernel counts the sandbox's processes apart from the user's others."""
    shows = False
    """Whether a worker sees only what it was started with: then code that is small and not trusted is copied, so that one worker serves
    a whole run, and jobs of it at the same time get workers apart."""

    def __init__(self, *, threads: int = 1, folder: Path | None = None, device: Device = "cpu") -> None:
        self._base = Base(folder, self._job_owner())
        self._threads = threads
        self._device = device
        self._lock = threading.Lock()
        self._zygotes: dict[Key, Worker] = {}
        self._held: set[Key] = set()
        self._changed = threading.Condition(self._lock)
        self._runs = 0
        self._closed = False
        # The kernel ties a worker's life to the thread that started it, so one thread that stays starts them all.
        self._starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sandbox-starter")
        atexit.register(self.close)

    def __enter__(self) -> ProcessSandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def warm(self, *sides: Side) -> None:
        """Start the workers of these sides now and return at once, so that their imports overlap with other work."""
        for side in sides:
            with self._worker(Key(side)):
                pass

    def run(self, job: Job) -> Run:
        """Run one job to its end or its limits. Never raises for what the job did.

        Raises `SandboxUnavailable` where the worker does not start, `SandboxError` when closed or where there is no space for the job's
        folder, `OSError` for inputs that cannot be read, `TypeError` for arguments that are no JSON, `ValueError`
        for more than can be sent.
        """
        with self._running(), self._key(job) as key:
            return self._run(job, key)

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        """Count a run, so that `close` does not pull its folder away."""
        with self._lock:
            if self._closed:
                raise SandboxError("the sandbox is closed")
            self._runs += 1
        try:
            yield
        finally:
            with self._lock:
                self._runs -= 1
                self._changed.notify_all()

    def _run(self, job: Job, key: Key) -> Run:
        report: Mapping[str, Any] = {}
        for last in (False, True):
            stage = self._stage(key, job)
            try:
                report = self._exchange(key, _written(self._request(job, stage)), job.limits.seconds)
            except BaseException:
                stage.remove()
                raise
            if report or last or self._closed:
                break
            stage.remove()  # its worker or keeper died, which need not be the job's doing
        full = self._base.full()  # before what the job wrote is removed
        output, refused = self._base.keep(stage, job.limits.file_bytes)
        if not report:
            return Run("lost", output, error="the sandbox's worker was ended from outside")
        run = Run(output=output, **outcome(report, job.limits))
        if full and run.status in ("error", "crash", "disk"):
            return replace(run, status="lost", error=f"no space is left in {self._base.path}: {run.error}")
        if not refused or run.status != "ok":
            return run
        return replace(run, status="error", result=None, error=refused)

    def _stage(self, key: Key, job: Job) -> Stage:
        try:
            return self._base.stage(area(key), job.inputs, job.root, copied=self.shows and key.root is None)
        except (OSError, shutil.Error) as error:
            if self._base.full():
                raise SandboxError(f"no space is left in {self._base.path}: make room, or set TMPDIR to another disk") from error
            raise

    def release(self, run: Run) -> None:
        """Remove the files of a finished run."""
        if run.output.parent == self._base.path / KEPT:
            remove(run.output)

    def close(self) -> None:
        """Stop all workers with whatever they run, and remove all files. May be called more than once."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        atexit.unregister(self.close)
        for zygote in list(self._zygotes.values()):
            self._end(zygote)
        with self._lock:
            self._changed.wait_for(lambda: self._runs == 0, END_SECONDS)
        self._starter.shutdown()
        self._base.close()

    def _request(self, job: Job, stage: Stage) -> dict[str, Any]:
        folders = {name: str(path) for name, path in stage.folders.items()}
        return {
            "entry": job.entry,
            "side": job.side,
            "root": str(stage.code),
            "arguments": dict(job.arguments),
            "inputs": {name: str(path) for name, path in stage.inputs.items()},
            "folders": folders,
            "limits": vars(job.limits),
            "own_users": self.own_users,
            "shared": self.shared,
            "environment": {**self._environment(), "HOME": folders["home"], "TMPDIR": folders["tmp"]},
        }

    def _environment(self) -> dict[str, str]:
        """What the worker and its jobs see; the worker's handle adds the token that marks every process that comes from it."""
        passed = {name: os.environ[name] for name in PASSED if name in os.environ}
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "PJRT_NPROC"), str(self._threads))
        user = {"PYTHONUSERBASE": site.getuserbase()}
        if self._device == "cpu":
            return {**passed, **threads, **FIXED, **user}
        accelerators = {name: os.environ[name] for name in PASSED_ON_GPU if name in os.environ}
        defaults = {name: value for name, value in FIXED.items() if name != "CUDA_VISIBLE_DEVICES"}
        return {**passed, **threads, **defaults, **ON_GPU, **accelerators, **user}

    @contextlib.contextmanager
    def _key(self, job: Job) -> Iterator[Key]:
        """The worker that this job goes to, for as long as it runs."""
        if not self.shows:
            yield Key(job.side)
            return
        location = job.root.resolve()
        copied = job.side != "original" and not self._base.path.is_relative_to(location) and small(location)
        root = None if copied else str(location)
        if job.side == "original":  # one code base: its jobs trust each other
            yield Key(job.side, root)
            return
        with self._lock:
            key = next(key for location in itertools.count() if (key := Key(job.side, root, location)) not in self._held)
            self._held.add(key)
        try:
            yield key
        finally:
            with self._lock:
                self._held.remove(key)

    def _command(self, key: Key) -> list[str]:
        """What starts the worker for this key; the number of its control socket is appended."""
        return [sys.executable, "-B", "-P", "-m", "migrate_agent.sandbox.worker", key.side]

    def _job_owner(self) -> tuple[int, int] | None:
        """User and group that own the folders of jobs, where these are not this process's."""
        return None

    def _launch(self, key: Key, environment: Mapping[str, str], log: Path, token: str) -> Worker:
        """Start a worker for this key. Raises `OSError` or `SandboxUnavailable`."""
        return Zygote(self._command(key), environment, log, token)

    @contextlib.contextmanager
    def _worker(self, key: Key) -> Iterator[Worker]:
        """The live worker for this key, started where there is none, and kept while in use."""
        with self._lock:
            if self._closed:
                raise SandboxError("the sandbox is closed")
            zygote = self._zygotes.pop(key, None)
            if zygote is None or not zygote.alive():
                self._end(zygote)
                zygote = self._start(key)
            self._zygotes[key] = zygote  # last used, last in order
            zygote.users += 1
            idle = [idle_key for idle_key, other in self._zygotes.items() if not other.users]
            for idle_key in idle[: max(len(self._zygotes) - MAX_WORKERS, 0)]:
                self._end(self._zygotes.pop(idle_key))
        try:
            yield zygote
        finally:
            with self._lock:
                zygote.users -= 1

    def _start(self, key: Key) -> Worker:
        log = self._base.path / f"worker-{secrets.token_hex(4)}.log"
        environment = {**self._environment(), "HOME": str(self._base.area(area(key)))}
        return self._starter.submit(self._launch, key, environment, log, secrets.token_hex(16)).result()

    def _end(self, zygote: Worker | None) -> None:
        if zygote is not None:
            zygote.close()

    def _exchange(self, key: Key, request: bytes, seconds: float) -> Mapping[str, Any]:
        """Send the job and wait for its report; {} where the worker or keeper died while the job ran. One that never ran is sent again."""
        for _ in range(2):
            with self._worker(key) as zygote:
                here, there = socket.socketpair()
                with here:
                    with there, contextlib.suppress(OSError):
                        zygote.submit(there)
                    nonce = secrets.token_hex(NONCE_BYTES // 2)
                    report, hung = _converse(here, request, nonce, seconds)
            if report is None or hung:
                with self._lock:
                    if self._zygotes.get(key) is zygote:
                        self._end(self._zygotes.pop(key))
            if report is not None:
                return report if genuine(report, nonce) else {}
        if self._closed:
            return {}
        raise SandboxUnavailable(f"the sandbox's worker for the {key.side} side does not start: {zygote.last_words()}")


def area(key: Key) -> str:
    """The name of the folder that jobs of this key share."""
    return f"{key.side}-{hashlib.sha256(repr(tuple(key)).encode()).hexdigest()[:12]}"


def _written(request: Mapping[str, Any]) -> bytes:
    """The job as it is sent. Raises `TypeError` for what is no JSON, `ValueError` where it is too much."""
    data = json.dumps(request).encode("ascii")
    if len(data) > REQUEST_BYTES:
        raise ValueError(
            f"the arguments of {request['entry']} have {len(data)} bytes as JSON, more than {REQUEST_BYTES}: hand them over as inputs"
        )
    return data


def _converse(here: socket.socket, request: bytes, nonce: str, seconds: float) -> tuple[Mapping[str, Any] | None, bool]:
    """The report: {} where the job started but no proper report came, None where it never started; and whether the keeper hangs."""
    data = bytearray()
    hung = False
    try:
        here.settimeout(START_SECONDS)
        here.sendall(len(request).to_bytes(LENGTH_BYTES, "big") + request + nonce.encode("ascii"))
        data += here.recv(len(STARTED), socket.MSG_WAITALL)
        until = time.monotonic() + seconds + GRACE_SECONDS
        while len(data) <= REPORT_BYTES:
            here.settimeout(max(until - time.monotonic(), 0.001))
            more = here.recv(2**20)
            if not more:
                break
            data += more
    except TimeoutError:
        hung = True
    except OSError:
        pass  # the worker died; what came before says how far it got
    if not data.startswith(STARTED):
        return None, hung
    try:
        report = json.loads(data[len(STARTED) :])
    except (ValueError, RecursionError):
        report = {}
    return (report if isinstance(report, dict) else {}), hung
