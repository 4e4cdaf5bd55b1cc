"""Small git repositories for the agent's tests."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

MODULE = '''import torch
from torch import nn


class {name}(nn.Module):
    """{doc}"""

    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)
{extra}
    def forward(self, x, *, scale):
        return self.fc(x)
'''


def module(name: str, doc: str = "A layer.", needs: str = "") -> str:
    """Source of a file with one module class, that constructs another where `needs` names one."""
    return MODULE.format(name=name, doc=doc, extra=f"        self.inner = {needs}(width)\n" if needs else "")


def git(root: Path, *arguments: str) -> str:
    """Run git and give its output."""
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def repository(root: Path, files: Mapping[str, str]) -> Path:
    """A repository with one commit of these files, at a fixed date, so that its id is the same each time."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "-b", "main")
    write(root, files)
    git(root, "add", "-A")
    date = "2024-01-02T03:04:05 +0000"
    subprocess.run(
        ["git", "-c", "user.name=T", "-c", "user.email=t@example.invalid", "commit", "-qm", "first", "--date", date],
        cwd=root,
        check=True,
        env={
            "GIT_COMMITTER_DATE": date,
            "GIT_COMMITTER_NAME": "T",
            "GIT_COMMITTER_EMAIL": "t@e.invalid",
            "PATH": "/usr/bin:/bin:/usr/local/bin",
        },
    )
    return root


def write(root: Path, files: Mapping[str, str]) -> None:
    """Write files below a folder."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
