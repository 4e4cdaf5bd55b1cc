"""Small repositories with a finished run in them: the real command line over scripted services, so that no model code runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from migrate_agent.tests.agent.repositories import git, module, repository

UNITS = {
    "parts.py": module("Norm"),
    "block.py": module("Block", needs="Norm").replace("import torch\n", "import torch\nfrom parts import Norm\n"),
    "model.py": module("Net", needs="Block").replace("import torch\n", "import torch\nfrom block import Block\n"),
}
"""Three units, each of which needs the one before."""

OWNERS = {"CODEOWNERS": "* @ann\nmodel*.py @acme/models @robot\n"}


def migrate(root: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """One process of the command line with scripted services."""
    command = [sys.executable, "-m", "migrate_agent.tests.agent.driver", "0", "0", *arguments, "--repo", str(root)]
    env = {**{name: value for name, value in os.environ.items() if "TOKEN" not in name}, **(environment or {})}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env, timeout=600)


def migrated(root: Path, files: Mapping[str, str]) -> Path:
    """A repository of these files, after a run."""
    repository(root, files)
    done = migrate(root, "run", "--yes", "--no-llm")
    assert done.returncode == 0, done.stdout + done.stderr
    return root


def commit(root: Path, files: Mapping[str, str], message: str = "change") -> str:
    """Commit files on the present branch."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-qm", message)
    return git(root, "rev-parse", "HEAD")
