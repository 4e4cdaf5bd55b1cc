"""A team for tests: a repository with a finished run in it, and a forge that it is pushed to."""

from __future__ import annotations

import shutil
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate_agent.tests.agent import scripted
from migrate_agent.tests.agent.conftest import CANARY
from migrate_agent.tests.agent.forge.standin import StandIn
from migrate_agent.tests.agent.pr.team import OWNERS, UNITS, Team, migrated
from migrate_agent.tests.agent.repositories import git


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository after a run, that tests copy."""
    return migrated(tmp_path_factory.mktemp("finished") / "repo", {**UNITS, **OWNERS})


@pytest.fixture
def team(
    finished: Path, github: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Team]:
    """A team whose main branch is pushed, and the command line over scripted services, so that no model code runs."""
    github.reset(tmp_path / "server")
    root = tmp_path / "repo"
    shutil.copytree(finished, root, symlinks=True)
    git(root, "remote", "add", "origin", github.clone_url)
    git(root, "push", "-q", str(github.bare), "main")
    for name, value in {"GITHUB_TOKEN": CANARY, "GITHUB_SERVER_URL": github.base, "GITHUB_API_URL": github.base}.items():
        monkeypatch.setenv(name, value)
    real = types.ModuleType("migrate_agent.agent.loop.wiring")
    real.services = lambda warn: scripted.services()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "migrate_agent.agent.loop.wiring", real)
    yield Team(root, github, capfd)
    assert github.violations == []
    assert CANARY not in "".join(capfd.readouterr())
