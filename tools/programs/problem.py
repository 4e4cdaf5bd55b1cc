"""Why a run of a program did not end well, in one line that names the program's own files."""

from __future__ import annotations

import re

from migrate_agent.tools.programs.judge.running import WORK
from migrate_agent.tools.types import Run

PLACE = re.compile(r" \((/[^()]*):(\d+)\)$")
MISSING = "FileNotFoundError"
HARD = {"timeout": "took longer than the limit", "memory": "needs more memory than the limit", "disk": "writes more than the limit"}
"""What a run used up → as people read it."""


def problem(run: Run) -> str:
    """The error of a run, where it was raised if that is in the repository, and what to do about a file that is not there."""
    text = run.error or HARD.get(run.status, run.status)
    if run.status == "timeout":
        return f"{text}: give it options that end it sooner, steps in [[program]], or more seconds in [limits]"
    place = PLACE.search(text)
    if place is not None:
        _, inside, file = place.group(1).rpartition(f"/{WORK}/")
        text = text[: place.start()] + (f" ({file}:{place.group(2)})" if inside else "")
    if text.startswith(MISSING):
        text += ": name what git does not track in [[program]] reads"
    return text
