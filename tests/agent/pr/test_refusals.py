"""What the forge, the server's git and the surroundings refuse: one clear line each, nothing half-done that a second command does not finish."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from migrate_agent.agent.pr.stack import SINGLE
from migrate_agent.tests.agent.conftest import CANARY
from migrate_agent.tests.agent.forge.standin import PROJECT, Fault
from migrate_agent.tests.agent.pr import story
from migrate_agent.tests.agent.pr.team import Team
from migrate_agent.tests.agent.repositories import git

pytestmark = pytest.mark.slow  # the lane for forges runs them


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (Fault("GET", f"/repos/{PROJECT}$", 401, {"message": f"Bad credentials: {CANARY}"}), "401 while looking at .* not accepted"),
        (Fault("PATCH", "/pulls/1$", 409, {"message": "Conflict"}), "409 while changing #1: .* run the command again"),
        (Fault("POST", "/statuses/", 422, {"message": "No commit", "errors": [{"message": "for SHA"}]}), r"422 .*No commit for SHA"),
        (Fault("POST", "/pulls$", 0, cut=True), r"no answer while opening .*1 of 6 steps were done"),
    ],
    ids=lambda value: f"{value.method} {value.path} {value.status}" if isinstance(value, Fault) else None,
)
def test_a_fault_is_one_line_and_a_second_command_finishes(team: Team, fault: Fault, says: str) -> None:
    arguments = ("--yes", "--single", "--label", "jax")
    team.forge.faults.append(fault)
    assert team.pr(*arguments) == 3
    (line,) = [line for line in team.err.splitlines() if line.startswith("migrate-agent: ")]
    assert re.search(says, line) and CANARY not in team.err
    assert team.pr(*arguments) == 0
    (pull,) = team.forge.pulls
    assert (pull["head"], pull["labels"], pull["reviewers"]) == (SINGLE, ["jax"], ["ann"])
    assert team.forge.statuses[team.forge.head(SINGLE)][-1]["state"] == "success"
    assert team.pr(*arguments) == 0 and team.quiet


HOOKS = {
    "GH006: Protected branch update failed": "protects branches of this name",
    "GH001: Large files detected: exceeds the file size limit of 100 MB": "for its size",
    "no commits on Fridays": r"a hook of the server refuses it \(no commits on Fridays\)",
}


def test_a_push_that_the_server_refuses(team: Team) -> None:
    file = team.forge.bare / "hooks" / "pre-receive"
    file.write_text("")
    file.chmod(0o755)
    for hook, says in HOOKS.items():
        file.write_text(f"#!/bin/sh\ncat > /dev/null\necho '{hook}' >&2\nexit 1\n")
        assert team.pr("--yes", "--single") == 3
        assert re.search(says, team.err) and team.heads() == {} and team.forge.pulls == []
    file.write_text("#!/bin/sh\nwhile read old new ref; do case $ref in *model*) echo 'not this one' >&2; exit 1;; esac; done\n")
    assert team.pr("--yes") == 3 and len(team.forge.pulls) == 2  # half-way
    file.unlink()
    assert team.pr("--yes") == 0 and len(team.forge.pulls) == 3 and list(story.problems(team.forge)) == []


def test_what_is_refused_before_anything_is_done(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    assert team.pr() == 2 and "--yes" in team.err and team.quiet
    assert team.command("run", "--pr") == 2 and "--yes" in team.err and "scanning" not in team.err
    assert team.pr("--yes", "--remote", "upstream") == 2 and "no remote upstream" in team.err
    git(team.forge.bare, "update-ref", f"refs/heads/{SINGLE}", "main")
    team.forge.protected = {SINGLE}
    assert team.pr("--yes", "--single") == 3 and "is protected" in team.err and team.quiet
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_wrongwrongwrongwrongwrongwrongwrong")
    assert team.pr("--yes") == 3 and "not accepted" in team.err and "ghp_wrong" not in team.err
    monkeypatch.delenv("GITHUB_TOKEN")
    monkeypatch.setenv("PATH", str(Path(shutil.which("git") or "").parent))
    monkeypatch.setenv("GH_CONFIG_DIR", "/nonexistent")
    assert team.pr("--yes") == 3 and "no token for" in team.err
    assert team.command("run", "--pr", "--yes") == 3 and "no token for" in team.err and "scanning" not in team.err


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
