"""The process that watches over one job: starts it, holds it to its limits, kills all that it started, reports.

Runs inside the sandbox, forked by `worker` for each job, and is trusted. All descendants of the job stay its descendants, however often
they fork or change session, because it adopts orphans; so nothing outlives it. It speaks with the host over the job's own socket:

    host → keeper   8 bytes length, the job as JSON; then the nonce (taken in only after the job's process was forked off)
    keeper → host   "started\\n" before the job's process is forked off, then one JSON document (the nonce in it) and the end of the stream

The keeper is not traceable, so code of the same user that is no root can neither read the nonce from its memory nor take its socket.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import psutil  # type: ignore[import-untyped]

from migrate_agent.sandbox import child, linux
from migrate_agent.sandbox.staging import FILES, remove, walk

LOG_BYTES = 128 * 2**10
"""How much of a log is kept at each end; what lies between is dropped."""
CHUNK = 2**16
POLL_SECONDS = 0.01
POLL_SHARE = 20
"""Time between two looks at the processes, in costs of one look: bounds what looking costs."""
DISK_SECONDS = 0.5
LENGTH_BYTES, NONCE_BYTES = 8, 32
STARTED = b"started\n"
KILL_SECONDS = 20.0
STACK_SECONDS = 0.3


def main(connection: socket.socket) -> NoReturn:
    """Serve the one job that comes over this connection, and end."""
    try:
        os.setsid()
        end_with_parent()
        linux.adopt_orphans()
        linux.set_traceable(False)
        spec = json.loads(_receive(connection, int.from_bytes(_receive(connection, LENGTH_BYTES), "big")))
        report = _Keeper(spec, connection).serve()
        report["nonce"] = _receive(connection, NONCE_BYTES).decode("ascii")
        connection.sendall(json.dumps(report).encode("ascii"))
    except ConnectionError:
        pass  # the host has gone away; nobody is left to be told
    except Exception:
        traceback.print_exc()  # to the worker's log; the host sees the stream end without a report
    finally:
        kill_descendants()
        os._exit(0)


def end_with_parent() -> None:
    """When the parent ends, or SIGTERM comes, kill all descendants and end. Not SIGKILL: nobody would be left to kill them."""
    signal.signal(signal.SIGTERM, _end)
    linux.die_with_parent(signal.SIGTERM)


def _end(*_: object) -> NoReturn:
    kill_descendants()
    os._exit(1)


def _receive(connection: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise ConnectionError("the host hung up")
        data += more
    return bytes(data)


@dataclass
class _Log:
    """The first and last bytes of an endless stream."""

    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    dropped: int = 0

    def add(self, data: bytes) -> None:
        room = max(LOG_BYTES - len(self.head), 0)
        self.head += data[:room]
        self.tail += data[room:]
        excess = max(len(self.tail) - LOG_BYTES, 0)
        self.dropped += excess
        del self.tail[:excess]

    def text(self) -> str:
        gap = f"\n… {self.dropped} bytes left out …\n".encode() if self.dropped else b""
        return bytes(self.head + gap + self.tail).decode("utf-8", errors="replace")


class _Keeper:
    """One job from fork to report."""

    def __init__(self, spec: Mapping[str, Any], connection: socket.socket) -> None:
        self.spec = {**spec, "protected": [1, os.getppid(), os.getpid()]}
        self.limits = spec["limits"]
        self.connection = connection
        self.log = _Log()
        self.result = bytearray()
        self.wait_status: int | None = None
        self.peak = 0

    def serve(self) -> dict[str, Any]:
        self.connection.sendall(STARTED)  # before the fork: once the job runs, it may kill us
        self._start()
        end = self._watch()
        seconds = time.monotonic() - self.began
        if end == "timeout":
            self._note_where()
        for pid, status, peak in kill_descendants():
            self._ended(pid, status, peak)
        while self._read(0.0) & self.sinks.keys():
            pass
        self._scrub()
        return {
            "end": end,
            "wait_status": self.wait_status,
            "result": self.result.decode("ascii", errors="replace"),
            "log": self.log.text(),
            "seconds": seconds,
            "peak_memory_bytes": self.peak,
        }

    def _start(self) -> None:
        self.me = psutil.Process()
        result, result_end = os.pipe()
        log, log_end = os.pipe()
        self.began = time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            child.main(self.spec, result_end, log_end)
        os.close(result_end)
        os.close(log_end)
        self.sinks = {result: self._keep_result, log: self.log.add}
        self.poll = select.poll()
        self.poll.register(self.connection, 0)  # its end only: the nonce may lie there unread
        for pipe in self.sinks:
            self.poll.register(pipe, select.POLLIN)
        if hasattr(os, "pidfd_open"):
            self.poll.register(os.pidfd_open(self.pid), select.POLLIN)

    def _keep_result(self, data: bytes) -> None:
        if len(self.result) <= child.RESULT_BYTES:  # a little more is enough to know that it is too much
            self.result += data

    def _read(self, seconds: float) -> set[int]:
        """Wait for something to happen and take in a piece of what each pipe holds. Returns the descriptors where something happened."""
        ready = {descriptor for descriptor, _ in self.poll.poll(seconds * 1000)}
        for pipe in ready & self.sinks.keys():
            data = os.read(pipe, CHUNK)
            self.sinks[pipe](data)
            if not data:
                del self.sinks[pipe]
                self.poll.unregister(pipe)
                os.close(pipe)
        return ready

    def _watch(self) -> str:
        """Until the job's own process ends (`exit`) or a limit is passed; returns the name of the end."""
        look = disk = 0.0
        pause = POLL_SECONDS
        while True:
            if self.connection.fileno() in self._read(pause):
                return "cancelled"
            now = time.monotonic()
            if self._reap():
                return "exit"
            if now - self.began > self.limits["seconds"]:
                return "timeout"
            if now < look:
                continue
            end = self._over_limits()
            if now > disk and not end:
                end = "disk" if _usage(self.spec["folders"], self.limits["file_bytes"]) > self.limits["file_bytes"] else ""
                disk = time.monotonic() + DISK_SECONDS
            if end:
                return end
            pause = max(POLL_SECONDS, POLL_SHARE * (time.monotonic() - now))
            look = time.monotonic() + pause

    def _reap(self) -> bool:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.wait4(-1, os.WNOHANG))[0]:
                self._ended(ended[0], ended[1], _peak(ended[2]))
        return self.wait_status is not None

    def _ended(self, pid: int, status: int, peak: int) -> None:
        self.peak = max(self.peak, peak)
        if pid == self.pid:
            self.wait_status = status

    def _over_limits(self) -> str:
        processes = self.me.children(recursive=True)
        if len(processes) > self.limits["processes"]:
            return "processes"
        threads = used = 0
        for process in processes:
            with contextlib.suppress(psutil.Error):
                threads += process.num_threads()
                used += process.memory_info().rss
        if threads > self.limits["processes"] * child.THREADS_PER_PROCESS:
            return "threads"
        if used > self.limits["memory_bytes"]:
            used = _proportional(processes)
        self.peak = max(self.peak, used)
        return "memory" if used > self.limits["memory_bytes"] else ""

    def _scrub(self) -> None:
        """Empty the folders that jobs of this worker share, unless another job runs; then it will do that."""
        now = time.clock_gettime(time.CLOCK_REALTIME)
        if len(psutil.Process(os.getppid()).children()) > 1:
            return
        jobs = Path(self.spec["folders"]["output"]).parents[1]
        for entry in (leftover for folder in self.spec["shared"] for leftover in _beside(jobs, folder)):
            with contextlib.suppress(OSError):
                if entry.stat(follow_symlinks=False).st_ctime <= now:  # else a job wrote it that has just begun
                    remove(Path(entry.path))

    def _note_where(self) -> None:
        """Have the job write its stacks to the log, so that the user sees where it hangs."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, child.WHERE_SIGNAL)
        until = time.monotonic() + STACK_SECONDS
        while time.monotonic() < until and not self._reap():
            self._read(0.05)


def _beside(spared: Path, folder: str) -> Iterator[os.DirEntry[str]]:
    """What a folder holds, without `spared`, which may lie in it, and without the folders on the way there."""
    for entry in os.scandir(folder):
        if not spared.is_relative_to(entry.path):
            yield entry
        elif spared != Path(entry.path):
            yield from _beside(spared, entry.path)


def _peak(usage: Any) -> int:
    """Largest resident set in bytes (getrusage(2): kibibytes on Linux, bytes on macOS)."""
    return int(usage.ru_maxrss) * (1024 if psutil.LINUX else 1)


def _proportional(processes: list[psutil.Process]) -> int:
    """Memory of these processes with shared pages counted once: a forked job shares most of its pages with the worker."""
    used = 0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            full = process.memory_full_info()
            used += getattr(full, "pss", full.rss)
    return used


def _usage(folders: Mapping[str, str], limit: int) -> int:
    """Bytes on disk under these folders; more than the limit where there are too many files."""
    used = 0
    for count, entry in enumerate(file for folder in folders.values() for file in walk(folder)):
        with contextlib.suppress(OSError):
            used += entry.stat(follow_symlinks=False).st_blocks * 512
        if count >= FILES or used > limit:
            # A folder that the job replaced by a link between two looks was followed: what lies there is not the job's.
            return 0 if any(map(os.path.islink, folders.values())) else limit + 1
    return used


def kill_descendants() -> list[tuple[int, int, int]]:
    """Kill all descendants of this process, which must adopt orphans, until none is left.

    Returns (process id, wait status, peak memory in bytes) of those that it reaped. Gives up after some seconds on what the kernel holds
    on to.
    """
    me = psutil.Process()
    reaped = []
    until = time.monotonic() + KILL_SECONDS
    while time.monotonic() < until:
        try:
            while (ended := os.wait4(-1, os.WNOHANG))[0]:
                reaped.append((ended[0], ended[1], _peak(ended[2])))
        except ChildProcessError:
            break  # none left
        for process in me.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                process.kill()
        select.select([], [], [], 0.001)
    return reaped
