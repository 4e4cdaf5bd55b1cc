"""Recording inside the user's own command: started by the `sitecustomize` that `command` puts on PYTHONPATH.

Imports nothing but the standard library until the user's program imports torch. Each process writes its own part, at its end, every few
seconds on the way (so that a killed process loses little), and in forked children too.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from migrate_agent.tools.record.session import Session, Writer
from migrate_agent.tools.record.store import write_json

VARIABLE = "MIGRATE_AGENT_RECORD"
"""Environment variable with the path of the plan (JSON: `root`, `files`, `units`, `max_bytes`, `output`, `interval`)."""


class Saver:
    """Writes what a session saw to `<output>/<process>.json`."""

    def __init__(self, output: Path, interval: float) -> None:
        self.session: Session | None = None
        self._output = output
        self._interval = interval
        self.begin()

    def begin(self) -> None:
        """Name the part after this process; again in a child after a fork."""
        self._name = f"{os.getpid()}-{os.urandom(4).hex()}"
        self._writer = Writer(self._output, f"{self._name}-")
        self._next = time.monotonic() + self._interval
        self._fresh = False  # what a child inherits, its parent saves

    def changed(self) -> None:
        """Something new was recorded: save it where the last save is `interval` seconds ago."""
        self._fresh = True
        if time.monotonic() >= self._next:
            self.save()

    def save(self) -> None:
        """Write the part. A failure is printed on stderr; the user's program goes on."""
        if self.session is None or not self._fresh or not self._output.is_dir():
            return  # nothing new, or the command ended and this process outlived it
        capture = self.session.capture
        # Saving calls torch itself, and those calls are none of the user's.
        active, capture.active = capture.active, False
        try:
            self._fresh = False
            write_json(self._writer.recording(self.session, {}), self._output / f"{self._name}.json")
        except Exception as error:
            print(f"migrate-agent: this process was not recorded: {type(error).__name__}: {error}", file=sys.stderr)
        finally:
            capture.active = active
            self._next = time.monotonic() + self._interval

    def watch_children(self) -> None:
        """Record in forked children as well; those of `multiprocessing` end without `atexit`."""
        from multiprocessing import util

        os.register_at_fork(after_in_child=self.begin)
        util.register_after_fork(self, lambda saver: util.Finalize(None, saver.save, exitpriority=100))


def start() -> Saver:
    """Record from here on in this process, as the plan in the environment says."""
    plan: dict[str, Any] = json.loads(Path(os.environ[VARIABLE]).read_text())
    saver = Saver(Path(plan["output"]), plan["interval"])
    saver.session = Session(
        Path(plan["root"]), plan["files"], plan["units"], plan["max_bytes"], saver.changed, plan["launching"], plan["functions"]
    )
    saver.session.install()
    atexit.register(saver.save)
    saver.watch_children()
    return saver
