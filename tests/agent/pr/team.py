"""Small repositories with a finished run in them, and a team that works with the requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from migrate_agent.agent.cli import guarded
from migrate_agent.agent.loop.run import Options, start
from migrate_agent.agent.pr.stack import branch_of
from migrate_agent.agent.runs.progress import Progress
from migrate_agent.tests.agent import scripted
from migrate_agent.tests.agent.forge.standin import StandIn
from migrate_agent.tests.agent.pr import story
from migrate_agent.tests.agent.repositories import git, module, repository

UNITS = {
    "parts.py": module("Norm"),
    "block.py": module("Block", needs="Norm").replace("import torch\n", "import torch\nfrom parts import Norm\n"),
    "model.py": module("Net", needs="Block").replace("import torch\n", "import torch\nfrom block import Block\n"),
}
"""Three units, each of which needs the one before."""
NORM, BLOCK, NET = IDS = ("parts.py:Norm", "block.py:Block", "model.py:Net")
BRANCHES = [branch_of(unit) for unit in IDS]
OWNERS = {"CODEOWNERS": "* @ann\nmodel*.py @acme/models @robot\n"}


@dataclass
class Team:
    """A clone with a run in it, the forge it is pushed to, and what the last command said and did."""

    root: Path
    forge: StandIn
    said: pytest.CaptureFixture[str]
    out: str = ""
    err: str = ""
    effect: story.Effect = field(default_factory=story.Effect)

    def command(self, *arguments: str) -> int:
        """Run a command; gives its exit status."""
        status: list[int] = []
        self.effect = story.effect(self.forge, lambda: status.append(guarded([*arguments, "--repo", str(self.root)])))
        self.out, self.err = self.said.readouterr()
        return status[0]

    def pr(self, *arguments: str) -> int:
        """Run `pr`."""
        return self.command("pr", *arguments)

    def heads(self) -> dict[str, str]:
        """Our branches on the forge."""
        return story.heads(self.forge)

    @property
    def quiet(self) -> bool:
        """Whether the last command changed nothing."""
        return self.effect.quiet


def migrated(root: Path, files: Mapping[str, str]) -> Path:
    """A repository of these files, after a run."""
    repository(root, files)
    assert again(root) == 0
    return root


def again(root: Path) -> int:
    """One more run; gives its exit status."""
    return start(root, Options(llm=False), scripted.services(), Progress(), lambda context, state: "accept").exit_status


def commit(root: Path, files: Mapping[str, str], message: str = "change") -> str:
    """Commit files on the present branch."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-qm", message)
    return git(root, "rev-parse", "HEAD")
