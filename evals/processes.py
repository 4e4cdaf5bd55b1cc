"""Runs one group of a suite in a process of its own, and ends all processes that it started."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import IO, Any, NamedTuple

from migrate_agent.evals.suite import Group, Options, Outcome, Suite
from migrate_agent.evals.worker import decode

ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "PJRT_NPROC": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONWARNINGS": "ignore",
}
"""Groups run side by side: one thread each."""


class Stopped(Exception):
    """The suite was stopped while the group ran."""


class Ended(NamedTuple):
    """The outcomes that a process wrote, and in one line what ended it early, if anything."""

    outcomes: list[Outcome]
    error: str


@dataclass
class Processes:
    """The processes of a suite; each leads a group of processes, so that all that it started ends with it."""

    environment: Mapping[str, str] = field(default_factory=lambda: {**os.environ, **ENVIRONMENT})
    heard: Callable[[Group, Sequence[Outcome]], None] = lambda group, outcomes: None
    """Told of each outcome of a group, all so far, from a thread of the group's own."""
    _running: set[subprocess.Popen[str]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: bool = False

    def run(self, suite: Suite, group: Group, options: Options) -> list[Outcome]:
        """Run a group; where its process dies, each case alone, so that one bad case costs the others nothing. Raises `Stopped`."""
        outcomes, error = self._once(suite, group, options)
        if not error:
            return outcomes
        # What came before the crash is dropped where the cases run again one by one, else it would count twice.
        if len(group) > 1:
            return [outcome for case in group for outcome in self.run(suite, (case,), options)]
        return [*outcomes, Outcome(group[0], "wrong", f"the suite's process died: {error}")]

    def close(self) -> None:
        """End all that runs; nothing starts after this."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                _end(process)

    def _once(self, suite: Suite, group: Group, options: Options) -> Ended:
        order = json.dumps({"suite": suite.name, "group": group, "options": asdict(options)})
        limit = suite.seconds * len(group)
        process = self._start([sys.executable, "-m", "migrate_agent.evals.worker"])
        outcomes, said = list[Outcome](), deque[str](maxlen=20)

        def hear(line: str) -> None:
            # A process that is killed may leave half a line.
            if line.endswith("}\n"):
                outcomes.append(decode(line))
                self.heard(group, outcomes)

        readers = [_reader(process.stdout, hear), _reader(process.stderr, said.append)]
        try:
            _tell(process, order)
            process.wait(limit)
            error = _last(said, readers[1]) or f"exit status {process.returncode}" if process.returncode else ""
        except subprocess.TimeoutExpired:
            error = f"no end after {limit:.0f} s"
        finally:
            _end(process)
            process.wait()
            for reader in readers:
                reader.join(10)  # a child with a session of its own may keep the stream open
            with self._lock:
                self._running.discard(process)
        if self._stopped:
            raise Stopped
        return Ended(outcomes, error)

    def _start(self, command: list[str]) -> subprocess.Popen[str]:
        with self._lock:
            if self._stopped:
                raise Stopped
            pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
            process = subprocess.Popen(command, **pipes, text=True, env=dict(self.environment), start_new_session=True)
            self._running.add(process)
            return process


def _reader(stream: IO[str] | None, hear: Callable[[str], object]) -> threading.Thread:
    """A thread that hands on each line of a stream, to its end."""
    assert stream is not None

    def read() -> None:
        with stream:
            for line in stream:
                hear(line)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread


def _tell(process: subprocess.Popen[str], order: str) -> None:
    """Give the process what it reads. It may have ended before."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError), process.stdin as stream:
        stream.write(order)


def _last(said: Sequence[str], reader: threading.Thread) -> str:
    """The last line that was said and is not empty."""
    reader.join(1)
    return next((line.strip()[:300] for line in reversed(said) if line.strip()), "")


def _end(process: subprocess.Popen[str]) -> None:
    """End the process and those that it started and left behind."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
