"""The host's handle on one worker: start it, hand it jobs, end it with all that came from it."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from migrate_agent.sandbox.child import TOKEN

END_SECONDS = 30.0


class Worker(ABC):
    """A worker, wherever it runs: takes jobs over its control socket, and says to `log` what is not about a job."""

    def __init__(self, log: Path, token: str) -> None:
        self._log = log
        self.token = token
        """What the environment of all that comes from this worker carries."""
        self.users = 0
        """How many jobs it runs; counted by the sandbox."""
        self._lock = threading.Lock()

    @abstractmethod
    def control(self) -> socket.socket:
        """The socket that takes jobs. Raises `OSError` where the worker never came up."""

    @abstractmethod
    def alive(self) -> bool:
        """Whether it can still take jobs."""

    @abstractmethod
    def close(self) -> None:
        """End it and everything that came from it."""

    def submit(self, connection: socket.socket) -> None:
        """Have a keeper serve the other end of this connection. Raises `OSError` where the worker has died."""
        with self._lock:
            socket.send_fds(self.control(), [b"j"], [connection.fileno()])

    def last_words(self) -> str:
        """The last line that it wrote, for an error message."""
        lines = self._log.read_text(errors="replace").split("\n") if self._log.exists() else []
        return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")


class Zygote(Worker):
    """A worker that is a child process. Raises `OSError` where the command cannot be started."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path, token: str) -> None:
        super().__init__(log, token)
        self._control, theirs = socket.socketpair()
        with theirs, log.open("wb") as stream:
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno())],
                env={**environment, TOKEN: token},
                cwd=log.parent,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def control(self) -> socket.socket:
        return self._control

    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        self._control.close()  # it kills its jobs itself when it sees that
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)
        if self._process.poll() is None or self._process.returncode != 0:
            self._process.kill()
            self._process.wait()
            sweep(self.token)


def sweep(token: str) -> list[int]:
    """Kill every process of ours whose environment was started with this sandbox's token. Returns their ids.

    What remains for the case that the worker, which otherwise kills all that it started, was killed itself.
    """
    killed = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(TOKEN) == token:
                process.kill()
                killed.append(process.pid)
    return killed
