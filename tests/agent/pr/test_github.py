"""`migrate-agent pr` against the stand-in for GitHub, over real git and HTTP, every request held against GitHub's own description."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from migrate_agent.agent.cli import guarded
from migrate_agent.agent.pr.stack import SINGLE, branch_of
from migrate_agent.tests.agent.forge.prism import description, proxy
from migrate_agent.tests.agent.forge.standin import PROJECT, Fault, StandIn
from migrate_agent.tests.agent.pr.runs import OWNERS, UNITS, migrated
from migrate_agent.tests.agent.repositories import git

CANARY = "ghp_canaryXcanaryYcanaryZ0123456789abcd"
NORM, BLOCK, NET = ("parts.py:Norm", "block.py:Block", "model.py:Net")
BRANCHES = [branch_of(unit) for unit in (NORM, BLOCK, NET)]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository after a run, that tests copy."""
    return migrated(tmp_path_factory.mktemp("finished") / "repo", {**UNITS, **OWNERS})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    """One stand-in and one proxy for all tests."""
    described = description()
    made = StandIn(tmp_path_factory.mktemp("server"), CANARY, described)
    try:
        with proxy(described, tmp_path_factory.mktemp("prism"), made.upstream) as address:
            made.proxy = address
            yield made
    finally:
        made.close()


@dataclass
class Team:
    """A clone with a run in it, the forge it is pushed to, and what the last command said."""

    root: Path
    forge: StandIn
    said: pytest.CaptureFixture[str]
    out: str = ""
    err: str = ""

    def pr(self, *arguments: str) -> int:
        """Run the command."""
        self.forge.sent.clear()
        self.forge.pushes.clear()
        status = guarded(["pr", "--repo", str(self.root), *arguments])
        self.out, self.err = self.said.readouterr()
        return status

    def heads(self) -> dict[str, str]:
        """Our branches on the forge."""
        lines = git(self.forge.bare, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/migrate-agent").splitlines()
        return dict(line.removeprefix("refs/heads/").split() for line in lines)

    def quiet(self) -> bool:
        """Whether the last command changed nothing."""
        return not self.forge.writes() and not self.forge.pushes


@pytest.fixture
def team(
    finished: Path, server: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Team]:
    """A team whose main branch is pushed."""
    server.reset(tmp_path / "server")
    root = tmp_path / "repo"
    shutil.copytree(finished, root, symlinks=True)
    git(root, "remote", "add", "origin", server.clone_url)
    git(root, "push", "-q", str(server.bare), "main")
    for name, value in {"GITHUB_TOKEN": CANARY, "GITHUB_SERVER_URL": server.base, "GITHUB_API_URL": server.base}.items():
        monkeypatch.setenv(name, value)
    yield Team(root, server, capfd)
    assert server.violations == []
    assert CANARY not in capfd.readouterr().err


def test_a_stack_is_opened_kept_and_rebased(team: Team) -> None:
    before = git(team.root, "status", "--porcelain", "--branch"), git(team.root, "for-each-ref", "refs/heads")
    assert team.pr("--dry-run", "--label", "jax") == 0
    assert team.quiet() and team.heads() == {}
    assert team.out.count("open a request") == 3 and "**Verified: 2 of 2 checks passed.**" in team.out and "label" in team.out

    assert team.pr("--yes", "--label", "jax") == 0
    assert [(pull["head"], pull["base"]) for pull in team.forge.pulls] == [
        (BRANCHES[0], "main"),
        (BRANCHES[1], BRANCHES[0]),
        (BRANCHES[2], BRANCHES[1]),
    ]
    for pull, unit in zip(team.forge.pulls, (NORM, BLOCK, NET), strict=True):
        source, _, name = unit.partition(":")
        changed = git(team.forge.bare, "diff", "--name-only", pull["base"], pull["head"]).splitlines()
        evidence = f".migrate/evidence/{source}/{name}"
        files = [f"{evidence}/{file}" for file in ("README.md", "evidence.json", "report.html", "verdicts.svg")]
        assert changed == [*files, f".migrate/verified/{source}/{name}.json", source.replace(".py", "_jax.py")]
        (status,) = team.forge.statuses[team.forge.head(pull["head"])]
        assert (status["context"], status["state"], status["description"]) == ("migrate-agent/verify", "success", "2 of 2 checks passed")
        assert pull["labels"] == ["jax"] and not pull["draft"]
        assert pull["title"] == f"Migrate {unit} to JAX"
    assert [pull["reviewers"] for pull in team.forge.pulls] == [["ann"], ["ann"], ["models"]]  # the author is not asked
    assert "Stands on #2" in team.forge.pulls[2]["body"]
    assert (git(team.root, "status", "--porcelain", "--branch"), git(team.root, "for-each-ref", "refs/heads")) == before

    heads = team.heads()
    assert team.pr("--yes", "--label", "jax") == 0
    assert team.quiet() and team.heads() == heads and "nothing was pushed or sent" in team.err

    team.forge.merge(1, squash=True)
    merged = team.forge.head("main")
    assert team.pr("--yes", "--label", "jax") == 0
    assert [(pull["state"], pull["base"]) for pull in team.forge.pulls] == [("closed", "main"), ("open", "main"), ("open", BRANCHES[1])]
    assert git(team.forge.bare, "rev-parse", f"{BRANCHES[1]}^", f"{BRANCHES[2]}^^").split() == [merged] * 2
    assert git(team.forge.bare, "diff", "--name-only", "main", BRANCHES[1], "--", "*_jax.py") == "block_jax.py"
    assert "Stands on" not in team.forge.pulls[1]["body"]
    assert all(team.forge.statuses[head][-1]["state"] == "success" for head in team.heads().values())
    heads = team.heads()
    assert team.pr("--yes", "--label", "jax") == 0
    assert team.quiet() and team.heads() == heads


def test_one_request_for_all_as_a_draft(team: Team) -> None:
    assert team.pr("--yes", "--single", "--draft", "--reviewer", "@zoe", "--reviewer", "acme/jax") == 0
    (pull,) = team.forge.pulls
    assert pull["draft"] and pull["reviewers"] == ["zoe", "jax"] and "6 of 6 checks" in pull["body"]
    assert git(team.forge.bare, "rev-list", "--count", f"main..{pull['head']}") == "3"


def test_the_token_is_found_nowhere(team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    binary, log = tmp_path / "bin" / "git", tmp_path / "arguments"
    binary.parent.mkdir()
    binary.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {log}\nexec {shutil.which("git")} "$@"\n')
    binary.chmod(0o755)
    monkeypatch.setenv("PATH", f"{binary.parent}{os.pathsep}{os.environ['PATH']}")
    git(team.root, "config", "credential.helper", f"store --file={tmp_path / 'stored'}")
    monkeypatch.setenv("GIT_TRACE", str(tmp_path / "trace"))
    team.forge.faults.append(Fault("POST", "/statuses/", 401, {"message": f"Bad credentials: {CANARY}"}))
    assert team.pr("--yes", "--single", "--debug") == 3
    assert CANARY not in team.out + team.err
    assert team.pr("--yes", "--single") == 0 and CANARY not in team.out + team.err
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert log in files and (tmp_path / "trace") in files and "push" in log.read_text()
    assert [str(path) for path in files if CANARY.encode() in path.read_bytes()] == []
    objects = git(team.forge.bare, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").splitlines()
    assert [name for name in objects if CANARY in git(team.forge.bare, "cat-file", "-p", name)] == []


def test_a_remote_in_a_folder(team: Team) -> None:
    git(team.root, "remote", "set-url", "origin", f"file://{team.forge.bare}")
    where = ("--single", "--forge", "github", "--base-url", team.forge.base, "--project", PROJECT)
    assert team.pr("--yes", *where) == 0 and len(team.forge.pulls) == 1
    team.forge.page = 1
    assert team.pr("--yes", *where) == 0 and team.quiet()
    team.forge.page = 100


def test_what_is_refused_before_anything_is_done(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    assert team.pr() == 2 and "--yes" in team.err and team.quiet()
    assert team.pr("--yes", "--remote", "upstream") == 2 and "no remote upstream" in team.err
    git(team.forge.bare, "update-ref", f"refs/heads/{SINGLE}", "main")
    team.forge.protected = {SINGLE}
    assert team.pr("--yes", "--single") == 3 and "is protected" in team.err and team.quiet()
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_wrongwrongwrongwrongwrongwrongwrong")
    assert team.pr("--yes") == 3 and "not accepted" in team.err and "ghp_wrong" not in team.err
    monkeypatch.delenv("GITHUB_TOKEN")
    monkeypatch.setenv("PATH", str(Path(shutil.which("git") or "").parent))
    monkeypatch.setenv("GH_CONFIG_DIR", "/nonexistent")
    assert team.pr("--yes") == 3 and "no token for" in team.err
