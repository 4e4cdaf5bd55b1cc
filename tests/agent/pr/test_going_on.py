"""What others do between two commands: merge, go on from another machine, break a unit, commit to our branches, close a request."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tests.agent.pr import story
from migrate_agent.tests.agent.pr.team import BRANCHES, UNITS, Team, again, commit
from migrate_agent.tests.agent.repositories import git

pytestmark = pytest.mark.slow  # the lane for forges runs them


def test_another_machine_goes_on_without_a_run(team: Team, tmp_path: Path) -> None:
    assert team.pr("--yes") == 0
    commit(team.root, {"README.md": "more"})  # the target branch moves on, and the stack stays where it is
    git(team.root, "push", "-q", str(team.forge.bare), "main")
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(team.forge.bare), str(other))
    git(other, "remote", "set-url", "origin", team.forge.clone_url)
    mine, team.root = team.root, other
    assert team.pr("--yes") == 0 and team.quiet
    team.forge.merge(1)
    assert team.pr("--yes") == 0
    assert team.forge.pulls[1]["base"] == "main" and team.effect.pushes == 2
    team.root = mine
    assert team.pr("--yes") == 0 and team.quiet  # both machines make the same commits


def test_a_changed_unit_updates_and_a_failed_one_turns_into_a_draft(team: Team) -> None:
    assert team.pr("--yes") == 0
    old = team.heads()
    sources = {
        "block.py": UNITS["block.py"].replace("A layer.", "A layer. script: fail"),
        "parts.py": UNITS["parts.py"].replace("A layer.", "A wide layer."),
    }
    commit(team.root, sources)
    git(team.root, "push", "-q", str(team.forge.bare), "main")
    assert again(team.root) == 1
    assert team.pr("--yes") == 1
    assert [pull["draft"] for pull in team.forge.pulls] == [False, True, True]
    assert "Not verified any more" in team.forge.pulls[1]["body"] and "scripted fail" in team.forge.pulls[1]["body"]
    assert team.forge.statuses[old[BRANCHES[1]]][-1]["state"] == "failure"
    assert {branch: head for branch, head in team.heads().items() if old[branch] != head}.keys() == {BRANCHES[0]}
    assert team.pr("--yes") == 1 and team.quiet
    commit(team.root, {"block.py": UNITS["block.py"]})
    git(team.root, "push", "-q", str(team.forge.bare), "main")
    assert again(team.root) == 0
    assert team.pr("--yes") == 0
    assert [pull["draft"] for pull in team.forge.pulls] == [False, False, False] and len(team.forge.pulls) == 3
    assert not any("Not verified" in pull["body"] for pull in team.forge.pulls)
    assert team.forge.statuses[team.heads()[BRANCHES[1]]][-1]["state"] == "success"
    assert team.pr("--yes") == 0 and team.quiet


def test_what_a_person_did_is_kept(team: Team, tmp_path: Path) -> None:
    assert team.pr("--yes") == 0
    team.forge.pulls[0]["body"] = f"Why now.\n\n{team.forge.pulls[0]['body']}\n\nSee also #12."
    team.forge.pulls[0]["title"] = "Our title"
    assert team.pr("--yes") == 0 and team.quiet
    person = tmp_path / "person"
    git(tmp_path, "clone", "-q", "-b", BRANCHES[1], str(team.forge.bare), str(person))
    git(person, "commit", "-q", "--amend", "-m", git(person, "log", "-1", "--format=%B").replace("Migrate", "I migrate"))
    git(person, "push", "-q", "--force")
    heads = team.heads()
    team.forge.merge(1, "squash")
    del heads[BRANCHES[0]]
    assert team.pr("--yes") == 1
    assert team.heads() == heads and "this program did not make" in team.err and "stands on" in team.err


def test_a_closed_request_stays_closed(team: Team) -> None:
    assert team.pr("--yes") == 0
    team.forge.pulls[1]["state"] = "closed"
    assert team.pr("--yes") == 1 and team.quiet
    assert "#2 was closed without merging" in team.err and "whose request is closed" in team.err and len(story.opened(team.forge)) == 2


def test_what_was_migrated_must_be_on_the_target_branch(team: Team) -> None:
    git(team.forge.bare, "update-ref", "refs/heads/main", git(team.forge.bare, "commit-tree", "main^{tree}", "-m", "another history"))
    assert team.pr("--yes") == 2
    assert "is not on main of the remote" in team.err and team.quiet
