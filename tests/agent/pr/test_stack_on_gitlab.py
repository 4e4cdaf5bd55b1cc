"""`pr` against the stand-in for GitLab, over real git and HTTP: the same stack, in merge requests."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from migrate_agent.agent.cli import guarded
from migrate_agent.tests.agent.forge.gitlab_standin import PROJECT, TOKEN, StandIn
from migrate_agent.tests.agent.pr import story
from migrate_agent.tests.agent.pr.team import BRANCHES, IDS
from migrate_agent.tests.agent.repositories import git

pytestmark = pytest.mark.slow  # the lane for forges runs them


def test_a_stack_of_merge_requests(
    finished: Path, gitlab: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    gitlab.reset(tmp_path / "server")
    root = tmp_path / "repo"
    shutil.copytree(finished, root, symlinks=True)
    git(root, "remote", "add", "origin", f"{gitlab.base}/{PROJECT}.git")
    git(root, "push", "-q", str(gitlab.bare), "main")
    for name, value in {"GITLAB_TOKEN": TOKEN, "CI_SERVER_URL": gitlab.base, "CI_API_V4_URL": f"{gitlab.base}/api/v4"}.items():
        monkeypatch.setenv(name, value)

    def pr(*arguments: str) -> story.Effect:
        status: list[int] = []
        effect = story.effect(gitlab, lambda: status.append(guarded(["pr", "--yes", "--repo", str(root), *arguments])))
        assert status == [0], capfd.readouterr().err
        return effect

    pr("--draft", "--label", "jax")
    assert [(each["source_branch"], each["target_branch"]) for each in gitlab.requests] == list(
        zip(BRANCHES, ("main", *BRANCHES[:2]), strict=True)
    )
    assert [each["title"] for each in gitlab.requests] == [f"Draft: Migrate {unit} to JAX" for unit in IDS]
    assert [(each["labels"], each["reviewer_ids"]) for each in gitlab.requests[:2]] == [(["jax"], [1, 5])] * 2
    assert "Stands on !2" in gitlab.requests[2]["description"]
    assert all(gitlab.statuses[gitlab.head(branch)][-1]["state"] == "success" for branch in BRANCHES)
    assert pr("--draft", "--label", "jax").quiet

    gitlab.merge(1)
    tip = gitlab.head("main")
    pr("--draft", "--label", "jax")
    assert [(each["state"], each["target_branch"]) for each in gitlab.requests] == [
        ("merged", "main"),
        ("opened", "main"),
        ("opened", BRANCHES[1]),
    ]
    assert git(gitlab.bare, "rev-parse", f"{BRANCHES[1]}^", f"{BRANCHES[2]}^^").split() == [tip, tip] if gitlab.bare else False
    assert pr("--draft", "--label", "jax").quiet
    said = capfd.readouterr()
    assert TOKEN not in said.out + said.err
