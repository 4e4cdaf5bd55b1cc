"""`run --pr` and `pr` against the stand-in for GitHub, over real git and HTTP, every request held against GitHub's own description."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from migrate_agent.tests.agent.forge.standin import PROJECT
from migrate_agent.tests.agent.pr import story
from migrate_agent.tests.agent.pr.team import BRANCHES, IDS, Team, migrated
from migrate_agent.tests.agent.repositories import git, module

pytestmark = pytest.mark.slow  # the lane for forges runs them

RUN = ("run", "--pr", "--yes", "--no-llm")


def test_a_run_opens_a_stack_that_is_kept_and_rebased(team: Team) -> None:
    shutil.rmtree(team.root / ".git" / "migrate-agent")
    before = git(team.root, "status", "--porcelain", "--branch")
    assert team.command(*RUN) == 0
    assert [(pull["head"], pull["base"]) for pull in team.forge.pulls] == list(zip(BRANCHES, ("main", *BRANCHES[:2]), strict=True))
    assert list(story.problems(team.forge)) == [] and git(team.root, "status", "--porcelain", "--branch") == before
    for pull, unit in zip(team.forge.pulls, IDS, strict=True):
        source, _, name = unit.partition(":")
        evidence = [f".migrate/evidence/{source}/{name}/{file}" for file in ("README.md", "evidence.json", "report.html", "verdicts.svg")]
        assert story.changed(team.forge, pull) == [*evidence, f".migrate/verified/{source}/{name}.json", source.replace(".py", "_jax.py")]
        (status,) = team.forge.statuses[team.forge.head(pull["head"])]
        assert (status["context"], status["state"], status["description"]) == ("migrate-agent/verify", "success", "2 of 2 checks passed")
        assert pull["title"] == f"Migrate {unit} to JAX" and not pull["draft"]
    assert [pull["reviewers"] for pull in team.forge.pulls] == [["ann"], ["ann"], ["models"]]  # the author is not asked
    assert "Stands on #2" in team.forge.pulls[2]["body"]

    assert team.command(*RUN) == 0
    assert team.quiet and "nothing was pushed or sent" in team.err

    merged = team.forge.merge(1, "squash")
    assert team.command(*RUN) == 0
    assert [(pull["state"], pull["base"]) for pull in team.forge.pulls] == [("closed", "main"), ("open", "main"), ("open", BRANCHES[1])]
    assert git(team.forge.bare, "rev-parse", f"{BRANCHES[1]}^", f"{BRANCHES[2]}^^").split() == [merged] * 2
    assert list(story.problems(team.forge)) == [] and "Stands on" not in team.forge.pulls[1]["body"]
    assert team.command(*RUN) == 0
    assert team.quiet


def test_a_run_from_the_merged_state_goes_on(team: Team) -> None:
    assert team.pr("--yes") == 0
    team.forge.merge(1, "rebase")
    git(team.root, "pull", "-q", "--ff-only", str(team.forge.bare), "main")
    assert team.command(*RUN) == 0
    assert list(story.problems(team.forge)) == [] and len(team.forge.pulls) == 3
    assert team.command(*RUN) == 0 and team.quiet


def test_what_a_dry_run_shows_is_what_is_done(team: Team) -> None:
    assert team.pr("--dry-run", "--label", "jax") == 0
    assert team.quiet and team.heads() == {}
    shown = [line for line in team.out.splitlines() if line.startswith(("push", "open", "ask", "label", "set", "change"))]
    assert "**Verified: 2 of 2 checks passed.**" in team.out and sum(line.startswith("open a request") for line in shown) == 3
    assert team.pr("--yes", "--label", "jax") == 0
    assert len(shown) == team.effect.writes + team.effect.pushes and [pull["labels"] for pull in team.forge.pulls] == [["jax"]] * 3
    assert team.pr("--yes", "--label", "jax") == 0 and team.quiet


def test_one_request_for_all_as_a_draft(team: Team) -> None:
    assert team.pr("--yes", "--single", "--draft", "--reviewer", "@zoe", "--reviewer", "acme/jax") == 0
    (pull,) = team.forge.pulls
    assert pull["draft"] and pull["reviewers"] == ["zoe", "jax"] and "6 of 6 checks" in pull["body"]
    assert git(team.forge.bare, "rev-list", "--count", f"main..{pull['head']}") == "3"


def test_units_that_share_nothing_stand_side_by_side(team: Team, tmp_path: Path) -> None:
    team.root = migrated(tmp_path / "two", {"a.py": module("A"), "b.py": module("B")})
    git(team.root, "remote", "add", "origin", team.forge.clone_url)
    git(team.root, "push", "-qf", str(team.forge.bare), "main")
    assert team.pr("--yes") == 0
    assert [pull["base"] for pull in team.forge.pulls] == ["main", "main"] and list(story.problems(team.forge)) == []


def test_a_remote_in_a_folder_and_lists_in_pages(team: Team) -> None:
    git(team.root, "remote", "set-url", "origin", f"file://{team.forge.bare}")
    where = ("--forge", "github", "--base-url", team.forge.base, "--project", PROJECT)
    assert team.pr("--yes", *where) == 0 and len(team.forge.pulls) == 3
    team.forge.page = 1
    assert team.pr("--yes", *where) == 0 and team.quiet
