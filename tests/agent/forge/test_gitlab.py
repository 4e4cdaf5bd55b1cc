"""The client for GitLab against a stand-in with a memory. It is not GitLab, and no description checks it: GitLab publishes none in a registry."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from migrate_agent.agent.forge.base import CONTEXT, Check, ForgeError, LineNote, Request
from migrate_agent.agent.forge.connect import connect
from migrate_agent.agent.forge.faults import Caller
from migrate_agent.agent.forge.gitlab import GitLab
from migrate_agent.agent.forge.operations import GITLAB
from migrate_agent.agent.forge.remote import Address
from migrate_agent.tests.agent.forge.standin import Handler, serve

TOKEN, PROJECT = "glpat-canaryXcanaryY0123", "group/sub/vision"
ROOT = "/api/v4/projects/group%2Fsub%2Fvision"


class StandIn:
    """A project with merge requests, in the words of https://docs.gitlab.com/api/merge_requests/."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.statuses: dict[str, list[dict[str, Any]]] = {}
        self.discussions: dict[int, list[dict[str, Any]]] = {}
        self.sent: list[tuple[str, str]] = []
        self.failing: list[tuple[int, dict[str, str]]] = []
        self.server: ThreadingHTTPServer = serve(self._serve)

    @property
    def base(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server.server_port}"

    def _serve(self, request: Handler) -> None:
        parts = urlsplit(request.path)
        payload = request.payload()
        self.sent.append((request.command, parts.path))
        status, value = 401, {"message": "401 Unauthorized"}
        headers: dict[str, str] = {}
        if request.headers.get("PRIVATE-TOKEN") == TOKEN:
            if self.failing:
                status, headers = self.failing.pop(0)
                value = {"message": "go away"}
            else:
                query = {name: values[0] for name, values in parse_qs(parts.query).items()}
                status, value = self.answer(request.command, parts.path.removeprefix(ROOT), query, json.loads(payload) if payload else {})
        request.give(status, json.dumps(value).encode(), {"Content-Type": "application/json", **headers})

    def answer(self, method: str, path: str, query: dict[str, str], body: dict[str, Any]) -> tuple[int, Any]:
        """Status and value."""
        words = path.strip("/").split("/")
        match (method, *words):
            case ("GET", ""):
                rights = {"project_access": {"access_level": 40}, "group_access": None}
                facts = {"id": 7, "default_branch": "main", "web_url": f"{self.base}/{PROJECT}", "path_with_namespace": PROJECT}
                return 200, facts | {"permissions": rights}
            case ("GET", "repository", "branches", name):
                return (200, {"name": unquote(name), "protected": True}) if name == "main" else (404, {"message": "404 Branch Not Found"})
            case ("GET", "merge_requests"):
                wanted = {"state": query.get("state", "all"), "source_branch": query.get("source_branch", "")}
                return 200, [
                    each
                    for each in self.requests
                    if wanted["state"] in ("all", each["state"]) and wanted["source_branch"] in ("", each["source_branch"])
                ]
            case ("POST", "merge_requests"):
                if any(each["source_branch"] == body["source_branch"] and each["state"] == "opened" for each in self.requests):
                    return 409, {"message": [f"Another open merge request already exists for this source branch: {body['source_branch']}"]}
                number = len(self.requests) + 1
                facts = {
                    "id": 100 + number,
                    "iid": number,
                    "state": "opened",
                    "sha": "a" * 40,
                    "web_url": f"{self.base}/{PROJECT}/-/merge_requests/{number}",
                }
                refs = {
                    "diff_refs": {"base_sha": "b" * 40, "start_sha": "b" * 40, "head_sha": "a" * 40},
                    "reviewers": [{"id": 1}],
                    "labels": [],
                }
                self.requests.append(body | facts | refs | {"author": {"username": "robot"}, "draft": body["title"].startswith("Draft: ")})
                return 201, self.requests[-1]
            case ("GET", "merge_requests", number):
                return 200, self.requests[int(number) - 1]
            case ("PUT", "merge_requests", number):
                found = self.requests[int(number) - 1]
                found["labels"] += filter(None, body.pop("add_labels", "").split(","))
                found |= body
                found["draft"] = found["title"].startswith("Draft: ")
                return 200, found
            case ("GET", "merge_requests", number, "discussions"):
                return 200, [{"id": "x", "notes": [note]} for note in self.discussions.get(int(number), [])]
            case ("POST", "merge_requests", number, "discussions"):
                self.discussions.setdefault(int(number), []).append(body)
                return 201, {"id": "x", "notes": [body]}
            case ("GET", "repository", "commits", sha, "statuses"):
                return 200, [each for each in self.statuses.get(sha, []) if each["name"] == query.get("name")]
            case ("POST", "statuses", sha):
                self.statuses.setdefault(sha, []).append(body | {"id": len(self.sent), "status": body["state"]})
                return 201, self.statuses[sha][-1]
            case ("GET", "api", "v4", "users"):
                return 200, [{"id": 5, "username": "ann"}] if query["username"] == "ann" else []
        return 404, {"message": "404 Not Found"}


@pytest.fixture(scope="module")
def server() -> Iterator[StandIn]:
    """One for all tests."""
    made = StandIn()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def forge(server: StandIn) -> Iterator[GitLab]:
    """A client of an empty project."""
    for memory in (server.requests, server.statuses, server.discussions, server.sent, server.failing):
        memory.clear()
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
    sent = {(method, path.removeprefix("/api/v4")) for method, path in server.sent}
    unknown = [each for each in sent if not any(each[0] == method and re.fullmatch(pattern, each[1]) for method, pattern in patterns)]
    unused = [
        (method, pattern)
        for method, pattern in patterns
        if not any(method == sent_method and re.fullmatch(pattern, path) for sent_method, path in sent)
    ]
    assert (unknown, unused) == ([], [])
