"""The client for GitLab against the stand-in."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from migrate_agent.agent.forge.base import CONTEXT, Check, ForgeError, LineNote, Request
from migrate_agent.agent.forge.connect import connect
from migrate_agent.agent.forge.faults import Caller
from migrate_agent.agent.forge.gitlab import GitLab
from migrate_agent.agent.forge.operations import GITLAB
from migrate_agent.agent.forge.remote import Address
from migrate_agent.tests.agent.forge.gitlab_standin import PROJECT, TOKEN, StandIn


@pytest.fixture
def server(gitlab: StandIn) -> StandIn:
    """The stand-in."""
    return gitlab


@pytest.fixture
def forge(server: StandIn) -> Iterator[GitLab]:
    """A client of an empty project."""
    server.reset()
    made = GitLab(Address("gitlab", "127.0.0.1", f"{server.base}/api/v4", PROJECT), TOKEN, Caller("127.0.0.1", lambda seconds: None))
    yield made
    made.close()


def opened(forge: GitLab, branch: str = "migrate-agent/pr/a.py/A", draft: bool = False) -> Request:
    """A request."""
    return forge.open(branch, "main", "Migrate A", "text", draft)


def test_project_and_protection(forge: GitLab, server: StandIn) -> None:
    project = forge.project()
    assert (project.path, project.default_branch, project.writable) == (PROJECT, "main", True)
    assert forge.protected("main") and not forge.protected("migrate-agent/pr/a.py/A")
    assert forge.file_url("migrate-agent/pr/a", "x/y z.py") == f"{server.base}/{PROJECT}/-/blob/migrate-agent/pr/a/x/y%20z.py"


def test_requests_open_and_past(forge: GitLab, server: StandIn) -> None:
    first = opened(forge)
    server.requests[0]["state"] = "merged"
    second = opened(forge, "migrate-agent/pr/b.py/B", draft=True)
    opened(forge, "feature")
    found = forge.requests("migrate-agent/pr/", ["migrate-agent/pr/a.py/A", "migrate-agent/pr/b.py/B", "migrate-agent/pr/c.py/C"])
    assert [(each.number, each.state, each.draft) for each in found] == [(second.number, "open", True), (first.number, "merged", False)]
    assert (second.branch, second.base, second.author, second.head) == ("migrate-agent/pr/b.py/B", "main", "robot", "a" * 40)


def test_changes(forge: GitLab, server: StandIn) -> None:
    request = opened(forge)
    forge.edit(request, body="new", base="other")
    forge.set_draft(request, True)
    forge.add_labels(request, ["jax", "port"])
    forge.ask_review(request, ["ann", "nobody", "group/team"])
    found = server.requests[0]
    assert (found["description"], found["target_branch"], found["title"]) == ("new", "other", "Draft: Migrate A")
    assert found["labels"] == ["jax", "port"] and found["reviewer_ids"] == [1, 5]
    (drafted,) = forge.requests("migrate-agent/", [])
    forge.set_draft(drafted, False)
    assert server.requests[0]["title"] == "Migrate A"


def test_notes_and_checks(forge: GitLab, server: StandIn) -> None:
    request, note = opened(forge), LineNote("a_jax.py", 7, "run by no example")
    assert forge.notes(request) == [] and forge.check("a" * 40) is None
    forge.add_note(request, "a" * 40, note)
    assert forge.notes(request) == [note]
    assert server.discussions[1][0]["position"]["base_sha"] == "b" * 40
    for check in (Check("failure", "bad"), Check("success", "2 of 2 checks passed")):
        forge.set_check("a" * 40, check, "https://page")
        assert forge.check("a" * 40) == check
    assert [each["state"] for each in server.statuses["a" * 40]] == ["failed", "success"]
    assert {each["name"] for each in server.statuses["a" * 40]} == {CONTEXT}


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        ([(403, {})], "403 while opening .* lacks a scope"),
        ([(429, {"Retry-After": "900"})], "rate limit reached .* in 900 s"),
        ([(502, {})], "server failed"),
    ],
)
def test_faults(forge: GitLab, server: StandIn, answers: list[tuple[int, dict[str, str]]], says: str) -> None:
    server.failing += answers
    with pytest.raises(ForgeError, match=says):
        opened(forge)
    assert opened(forge).number == 1
    with pytest.raises(ForgeError, match=r"409 while opening .*already exists"):
        opened(forge)


def test_reads_are_tried_again_and_a_wrong_token_is_told(forge: GitLab, server: StandIn) -> None:
    server.failing += [(502, {}), (429, {"Retry-After": "1"})]
    assert forge.project().path == PROJECT
    wrong = connect(Address("gitlab", "host", f"{server.base}/api/v4", PROJECT), "glpat-wrong")
    with pytest.raises(ForgeError, match=r"401 .*not accepted"):
        wrong.project()
    wrong.close()


def test_every_operation_is_in_the_table(forge: GitLab, server: StandIn) -> None:
    forge.project()
    forge.protected("main")
    request = opened(forge)
    forge.requests("migrate-agent/", ["x"])
    forge.add_note(request, "a" * 40, LineNote("a.py", 1, "x"))
    forge.notes(request)
    forge.check("a" * 40)
    forge.set_check("a" * 40, Check("success", "x"), "")
    forge.ask_review(request, ["ann"])
    patterns = {(operation.method.upper(), re.sub(r"\\\{[^}]*\\\}|\{[^}]*\}", "[^/]+", operation.path)) for operation in GITLAB}
    sent = {(each.method, each.path.removeprefix("/api/v4")) for each in server.sent}
    unknown = [each for each in sent if not any(each[0] == method and re.fullmatch(pattern, each[1]) for method, pattern in patterns)]
    unused = [
        (method, pattern)
        for method, pattern in patterns
        if not any(method == sent_method and re.fullmatch(pattern, path) for sent_method, path in sent)
    ]
    assert (unknown, unused) == ([], [])
