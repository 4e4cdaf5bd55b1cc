"""Runs one group of a suite in a process of its own, and ends what is left of it, its children too."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

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
    """The suite was told to stop while the group ran."""


class Ended(NamedTuple):
    """The outcomes that a process wrote, and in one line what ended it early, if anything."""

    outcomes: list[Outcome]
    error: str


@dataclass
class Processes:
    """The processes of a suite; each leads a group of processes, so that all that it started ends with it."""

    environment: Mapping[str, str] = field(default_factory=lambda: {**os.environ, **ENVIRONMENT})
    _running: set[subprocess.Popen[str]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: bool = False

    def run(self, suite: Suite, group: Group, options: Options) -> list[Outcome]:
        """Run a group; where its process dies, each case alone, so that one bad case costs the others nothing. Raises `Stopped`."""
        found, error = self._once(suite, group, options)
        if not error:
            return found
        if len(group) > 1:
            return [outcome for case in group for outcome in self.run(suite, (case,), options)]
        return [*found, Outcome(group[0], "wrong", f"the suite's process died: {error}")]

    def stop(self) -> None:
        """End all that runs; nothing starts after this."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                _end(process)

    def _once(self, suite: Suite, group: Group, options: Options) -> Ended:
        order = json.dumps({"suite": suite.name, "group": group, "options": asdict(options)})
        limit = suite.seconds * len(group)
        process = self._start([sys.executable, "-m", "migrate_agent.evals.worker"])
        try:
            written, said = process.communicate(order, timeout=limit)
            last = said.strip().splitlines()[-1:] or [f"exit status {process.returncode}"]
            error = last[0][:300] if process.returncode else ""
        except subprocess.TimeoutExpired:
            _end(process)
            written, error = process.communicate()[0], f"no end after {limit:.0f} s"
        finally:
            _end(process)
            with self._lock:
                self._running.discard(process)
        if self._stopped:
            raise Stopped
        return Ended([decode(line) for line in written.splitlines() if line.endswith("}")], error)

    def _start(self, command: list[str]) -> subprocess.Popen[str]:
        with self._lock:
            if self._stopped:
                raise Stopped
            pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
            process = subprocess.Popen(command, **pipes, text=True, env=dict(self.environment), start_new_session=True)
            self._running.add(process)
            return process


def _end(process: subprocess.Popen[str]) -> None:
    """End the process and those that it started and left behind."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
