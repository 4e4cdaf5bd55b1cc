"""Lines that a run reaches."""

from __future__ import annotations

from pathlib import Path

from migrate_agent.tools.programs.judge.reach import ranges, reached, unreached

TEXT = '''\
import os


def used(x):
    """A docstring is no line."""
    if x:
        return 1
    y = (
        x
    )
    return y


def unused():
    z = 1
    return z


used(1)
if os.name == "none":
    raise ValueError
'''


def test_lines_that_did_not_run(tmp_path: Path) -> None:
    """Definitions and errors are none."""
    script = tmp_path / "script.py"
    with reached(script) as lines:
        exec(compile(TEXT, str(script), "exec"), {})
    assert ranges(unreached(TEXT, lines)) == "8, 11, 15-16"
