"""The review at a real (pseudo) terminal, over scripted services."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from migrate_agent.tests.agent.repositories import git, module, repository

DRIVER = Path(__file__).parents[1] / "driver.py"


def at_terminal(root: Path, keys: str) -> tuple[int, str]:
    """Run `run` with these keys typed ahead; gives the exit status and what the terminal showed."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "40"}
    command = [sys.executable, str(DRIVER), "0", "0", "run", "--repo", str(root)]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True) as process:
        os.close(theirs)
        os.write(ours, keys.encode())
        shown = b""
        while chunk := _read(ours):
            shown += chunk
        status = process.wait()
    os.close(ours)
    return status, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())


def _read(descriptor: int) -> bytes:
    """What comes next, nothing at the end (which Linux tells by an error)."""
    try:
        return os.read(descriptor, 65536)
    except OSError:
        return b""


@pytest.mark.slow
def test_keys_accept_skip_and_quit(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {name: module(name[0].upper()) for name in ("a.py", "b.py", "c.py")})
    status, shown = at_terminal(root, "a\nnonsense\ns\nq\n")
    assert status == 1
    for words in ("class A", "forward_fp64", "a_jax.py", "paused: nothing is lost; go on with `migrate-agent resume"):
        assert words in shown
    assert git(root, "log", "--format=%s", "--branches=migrate-agent/*").splitlines() == ["Migrate a.py:A to JAX", "first"]
    assert "Traceback" not in shown
