"""The one door to untrusted code: a `Sandbox` runs a `Job` and hands back a `Run`."""

from __future__ import annotations

from typing import Literal, Protocol

from migrate_agent.tools.types import Job, Run

Device = Literal["cpu", "gpu"]
"""What jobs may compute on: the processor alone, or the machine's accelerators too."""


class SandboxError(Exception):
    """The sandbox itself failed, whatever the job did."""


class SandboxUnavailable(SandboxError):
    """A sandbox that was demanded is missing here, or its worker does not start. One line that says what to do."""


class Sandbox(Protocol):
    """Runs jobs. Results are files and JSON; stdout is kept for people and never parsed."""

    name: str

    def run(self, job: Job) -> Run:
        """Run one job to its end or its limits. Never raises for what the job did. Safe to call from several threads."""
        ...

    def release(self, run: Run) -> None:
        """Remove the files of a finished run; `run.output` is gone afterwards."""
        ...

    def close(self) -> None:
        """Stop all workers and remove what they left."""
        ...
