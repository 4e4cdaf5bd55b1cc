"""Backends that can be used here, and ways to see what is left of a job."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

from migrate_agent.sandbox import BACKENDS, Sandbox, engine, missing
from migrate_agent.sandbox.child import TOKEN
from migrate_agent.sandbox.process import ProcessSandbox
from migrate_agent.tools.types import Job, Limits, Side

HERE = Path(__file__).parent
REASONS = {kind: missing(kind) for kind in BACKENDS}
KINDS = [pytest.param(kind, marks=pytest.mark.skipif(bool(reason), reason=f"{kind}: {reason}")) for kind, reason in REASONS.items()]
QUICK = Limits(seconds=60.0)
REMOVAL_SECONDS = 90.0
"""How long a loaded engine may take to remove a container that has ended."""


def job(entry: str, side: Side = "candidate", limits: Limits = QUICK, inputs: dict[str, Path] | None = None, **arguments: Any) -> Job:
    """A job of `entries.py`."""
    return Job(side, f"entries:{entry}", HERE, arguments, inputs or {}, limits)


def marked(marker: str) -> list[Any]:
    """The processes that carry this marker as an argument (the shells and editors of developers do not)."""
    found = []
    for process in psutil.process_iter():
        try:
            if marker in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def workers_of(sandbox: Sandbox) -> list[Any]:
    """The processes of this sandbox that serve jobs, wherever they run."""
    assert isinstance(sandbox, ProcessSandbox)
    tokens = {worker.token for worker in sandbox._zygotes.values()}
    return [process for process in psutil.process_iter() if _environment(process).get(TOKEN) in tokens and _serves(process)]


def _environment(process: Any) -> dict[str, str]:
    try:
        found: dict[str, str] = process.environ()
    except (psutil.Error, OSError):
        return {}
    return found


def _serves(process: Any) -> bool:
    return "migrate_agent.sandbox.worker" in process.cmdline()


def containers(folder: Path) -> list[str]:
    """The containers of sandboxes whose jobs lie in this folder, once the engine has had time to remove those that ended."""
    if REASONS["docker"]:
        return []
    until = time.monotonic() + REMOVAL_SECONDS
    with contextlib.closing(engine.connect()) as client:
        while True:
            found = client.containers.list(all=True, filters={"label": engine.LABEL}, ignore_removed=True)
            ours = [f"{each.name}: {each.status}" for each in found if each.labels[engine.LABEL].startswith(str(folder))]
            if not ours or time.monotonic() > until:
                return ours
            time.sleep(0.1)
