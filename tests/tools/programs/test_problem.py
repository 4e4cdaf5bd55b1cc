"""What a user reads of a program that does not run."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from migrate_agent.tools.programs.problem import problem
from migrate_agent.tools.types import Run

BOX = "/tmp/box/output/work"


@pytest.mark.parametrize(
    ("status", "error", "line"),
    [
        ("error", f"ValueError: no (good) config ({BOX}/tools/train.py:3)", "ValueError: no (good) config (tools/train.py:3)"),
        ("error", "RuntimeError: it left with status 3 (/opt/observe.py:83)", "RuntimeError: it left with status 3"),
        (
            "timeout",
            "took longer than 40 s",
            "took longer than 40 s: give it options that end it sooner, steps in [[program]], or more seconds in [limits]",
        ),
        (
            "error",
            f"FileNotFoundError: [Errno 2] No such file or directory: 'data/x.bin' ({BOX}/train.py:5)",
            "FileNotFoundError: [Errno 2] No such file or directory: 'data/x.bin' (train.py:5): name what git does not track in [[program]] reads",
        ),
    ],
)
def test_one_line(status: Literal["error", "timeout"], error: str, line: str) -> None:
    """With the program's own files, and no folder of the sandbox."""
    assert problem(Run(status=status, output=Path(), log="", error=error)) == line
