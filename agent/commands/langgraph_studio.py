"""The graph for LangGraph's own server and studio (`langgraph.json`): `langgraph dev` in a checkout, with `MIGRATE_AGENT_REPO` set.

A thread is a run: its folder in the repository is named by the thread's id, so a thread that is taken up again is the same run. `review` interrupts,
and is resumed with `accept` or `skip`. Checkpoints are the server's.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from migrate_agent.agent.cluster.workers import LocalWorkers
from migrate_agent.agent.config.config import load_config
from migrate_agent.agent.config.json_files import read, write
from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.graph import Graph, build
from migrate_agent.agent.loop.judging import Bench
from migrate_agent.agent.loop.run import Options, connected, keep_config, settings_of
from migrate_agent.agent.loop.services import Services
from migrate_agent.agent.loop.speculation import Speculation
from migrate_agent.agent.repository.git import open_repository
from migrate_agent.agent.runs.folder import RunFolder, home_of
from migrate_agent.agent.runs.progress import Progress
from migrate_agent.agent.runs.state import Settings
from migrate_agent.sandbox.base import Device, Sandbox
from migrate_agent.tools.types import Job, Run

PREVIEW = "preview"
"""The thread of a server that only looks at the graph's shape: nothing is written for it."""


class OpenedWhenUsed:
    """A sandbox that is opened by its first job, so that looking at the graph starts nothing."""

    name = "opened when used"

    def __init__(self, services: Services, kind: str, device: Device) -> None:
        self._services, self._kind, self._device = services, kind, device
        self._opened: Sandbox | None = None

    def run(self, job: Job) -> Run:
        """As the sandbox does."""
        return self._sandbox().run(job)

    def release(self, run: Run) -> None:
        """As the sandbox does."""
        self._sandbox().release(run)

    def close(self) -> None:
        """Close what was opened."""
        if self._opened is not None:
            self._opened.close()

    def _sandbox(self) -> Sandbox:
        if self._opened is None:
            self._opened = self._services.open_sandbox(self._kind, self._device)
        return self._opened


def graph(config: dict[str, Any]) -> Graph:
    """The graph over the repository in `MIGRATE_AGENT_REPO` (or the present folder), for the thread that the configuration names."""
    from migrate_agent.agent.loop.wiring import services

    progress = Progress()
    thread = str(config.get("configurable", {}).get("thread_id") or PREVIEW)
    return opened(Path(os.environ.get("MIGRATE_AGENT_REPO", ".")), thread, services(progress.warn), progress)


def opened(path: Path, thread: str, services: Services, progress: Progress, checkpointer: Any = None) -> Graph:
    """The graph of one thread. Raises `UserError` where the repository is none that can be migrated."""
    repository = open_repository(path)
    config = load_config(repository.root)
    folder = RunFolder(home_of(repository.common), f"studio-{thread}")
    if (folder / "settings.json").exists():
        settings = read(folder / "settings.json", Settings)
    else:
        settings = replace(settings_of(repository, config, Options(interactive=True)), id=folder.id)
        if thread != PREVIEW:
            folder.path.mkdir(parents=True)
            keep_config(repository.root, folder)
            write(folder / "settings.json", settings)
    sandbox = OpenedWhenUsed(services, settings.sandbox, settings.device)
    model = connected(settings, config, folder, services, progress) if thread != PREVIEW else None
    workers = LocalWorkers(Bench(services, sandbox))
    return build(Context(services, settings, folder, repository, config, sandbox, progress, Speculation(), workers, model), checkpointer)
