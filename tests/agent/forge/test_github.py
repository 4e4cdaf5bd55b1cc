"""The client for GitHub against the stand-in: every answer that is no success, pages, and drafts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate_agent.agent.forge.base import Check, ForgeError, LineNote
from migrate_agent.agent.forge.faults import Caller
from migrate_agent.agent.forge.github import GitHub
from migrate_agent.agent.forge.operations import GITHUB
from migrate_agent.agent.forge.remote import Address
from migrate_agent.tests.agent.conftest import CANARY
from migrate_agent.tests.agent.forge.standin import NAME, PROJECT, Fault, StandIn
from migrate_agent.tests.agent.repositories import git, repository


@pytest.fixture
def forge(github: StandIn, tmp_path: Path) -> Iterator[GitHub]:
    """A client of a repository with two branches."""
    github.reset(tmp_path / "server")
    root = repository(tmp_path / NAME, {"a.py": "1\n"})
    git(root, "checkout", "-q", "-b", "ours/a")
    (root / "a.py").write_text("1\n2\n")
    git(root, "commit", "-qam", "second")
    git(root, "push", "-q", str(github.bare), "main", "ours/a")
    made = GitHub(Address("github", "127.0.0.1", github.base, PROJECT), CANARY, Caller("127.0.0.1", lambda seconds: None))
    yield made
    made.close()
    assert github.violations == []


def test_all_operations_pass_the_description(forge: GitHub, github: StandIn) -> None:
    assert forge.project().default_branch == "main"
    assert forge.protected("main") and not forge.protected("ours/a") and not forge.protected("ours/none")
    request = forge.open("ours/a", "main", "Title", "Text", draft=True)
    assert forge.requests("ours/", ["ours/a", "ours/b"]) == [request] and request.draft
    forge.edit(request, body="New")
    forge.set_draft(request, False)
    forge.add_labels(request, ["jax", "port"])
    forge.ask_review(request, ["ann", "robot", "acme/models"])
    note = LineNote("a.py", 2, "look here")
    forge.add_note(request, request.head, note)
    assert forge.notes(request) == [note] and forge.check(request.head) is None
    forge.set_check(request.head, Check("success", "2 of 2"), "https://page.example")
    assert forge.check(request.head) == Check("success", "2 of 2")
    pull = github.pulls[0]
    assert (pull["body"], pull["draft"], pull["labels"], pull["reviewers"]) == ("New", False, ["jax", "port"], ["ann", "models"])
    github.merge(1)
    assert [each.state for each in forge.requests("ours/", ["ours/a"])] == ["merged"]
    patterns = {(each.method.upper(), re.sub(r"\{[^}]*\}", "[^/]+", each.path)) for each in GITHUB}
    sent = {(each.method, each.path.partition("?")[0]) for each in github.sent if each.path != "/graphql"}
    fits = {(one, pattern) for one in sent for pattern in patterns if one[0] == pattern[0] and re.fullmatch(pattern[1], one[1])}
    assert ({one for one, _ in fits}, {pattern for _, pattern in fits}) == (sent, patterns)


def test_pages_are_all_read(forge: GitHub, github: StandIn) -> None:
    for name in ("a", "b", "c"):
        git(github.bare, "update-ref", f"refs/heads/ours/{name}", github.head("ours/a"))
        forge.open(f"ours/{name}", "main", name, name, draft=False)
    github.page = 1
    assert len(forge.requests("ours/", [])) == 3
    github.page = 100


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (
            Fault("GET", f"/repos/{PROJECT}$", 401, {"message": f"Bad credentials: {CANARY}"}),
            "401 while looking at the repository: the token is not",
        ),
        (Fault("GET", f"/repos/{PROJECT}$", 404, {"message": "Not Found"}), "404 .* hidden from this token"),
        (Fault("POST", "/pulls$", 403, {"message": "Resource not accessible by personal access token"}), "403 .* lacks a scope"),
        (Fault("POST", "/pulls$", 409, {"message": "Conflict"}), "409 .* run the command again"),
        (
            Fault("POST", "/pulls$", 422, {"message": "Validation Failed", "errors": [{"message": "No history in common"}]}),
            "422 .*No history in common",
        ),
        (Fault("POST", "/pulls$", 502), r"server failed \(502\)"),
        (
            Fault("POST", "/pulls$", 403, {"message": "API rate limit exceeded"}, {"x-ratelimit-remaining": "0", "retry-after": "900"}),
            "rate limit .* 900 s",
        ),
        (Fault("POST", "/pulls$", 0, cut=True), "no answer while opening"),
        (Fault("POST", "/graphql$", 200, {"errors": [{"type": "FORBIDDEN", "message": "not for you"}], "data": None}), "not for you"),
    ],
    ids=lambda value: f"{value.method} {value.status} {value.path}" if isinstance(value, Fault) else None,
)
def test_faults(forge: GitHub, github: StandIn, fault: Fault, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", CANARY)
    github.faults.append(fault)
    with pytest.raises(ForgeError, match=says) as caught:
        forge.project()
        forge.set_draft(forge.open("ours/a", "main", "Title", "Text", draft=False), True)
    assert CANARY not in caught.value.message and "\n" not in caught.value.message


def test_passing_faults_pass(forge: GitHub, github: StandIn) -> None:
    github.faults += [Fault("GET", f"/repos/{PROJECT}$", 502), Fault("GET", f"/repos/{PROJECT}$", 429, {}, {"Retry-After": "3"})]
    assert forge.project().path == PROJECT
    github.faults.append(Fault("POST", "/pulls$", 403, {"message": "You have exceeded a secondary rate limit"}, {"Retry-After": "3"}))
    assert forge.open("ours/a", "main", "Title", "Text", draft=False).number == 1
