"""Backends that can be used here, and ways to see what is left of a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

from migrate_agent.sandbox import BACKENDS, missing
from migrate_agent.tools.types import Job, Limits, Side

HERE = Path(__file__).parent
REASONS = {kind: missing(kind) for kind in BACKENDS}
KINDS = [pytest.param(kind, marks=pytest.mark.skipif(bool(reason), reason=f"{kind}: {reason}")) for kind, reason in REASONS.items()]
QUICK = Limits(seconds=60.0)


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
