"""A stand-in for GitHub: a small server with a memory, over a real bare repository that git's own `http-backend` serves. It is not GitHub.

What it takes and gives is held against GitHub's own OpenAPI description where the validating proxy is there: requests to `/repos` go through it
to the stand-in and back. Answers are GitHub's own examples from that description, with the stand-in's facts put in.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit

from migrate_agent.tests.agent.forge.describe import example
from migrate_agent.tests.agent.forge.served import Handler, serve, serve_git
from migrate_agent.tests.agent.repositories import git

OWNER, NAME = "acme", "vision"
PROJECT = f"{OWNER}/{NAME}"


@dataclass
class Sent:
    """A request that reached the forge's interface, and how it was answered."""

    method: str
    path: str
    status: int
    body: Any = None

    @property
    def writes(self) -> bool:
        """Whether it asks for a change."""
        return self.method != "GET"


@dataclass
class Fault:
    """An answer in the place of the next one to a request of this method and path."""

    method: str
    path: str
    status: int
    body: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    times: int = 1
    cut: bool = False
    """Break the connection instead, after the change was made."""


@dataclass
class StandIn:
    """The forge. `description` is GitHub's, cut down; `proxy` where the validating proxy listens, "" without one."""

    folder: Path
    token: str
    description: Mapping[str, Any] = field(default_factory=dict)
    proxy: str = ""
    pulls: list[dict[str, Any]] = field(default_factory=list)
    statuses: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    comments: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    sent: list[Sent] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    pushes: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    protected: set[str] = field(default_factory=lambda: {"main"})
    page: int = 100

    def __post_init__(self) -> None:
        self.reset(self.folder)
        self._front = serve(lambda request: _Front.answer(request, self))
        self._back = serve(lambda request: _Back.answer(request, self))

    def reset(self, folder: Path) -> None:
        """An empty repository in a folder, and nothing remembered."""
        self.folder, self.bare = folder, folder / f"{NAME}.git"
        folder.mkdir(parents=True, exist_ok=True)
        git(folder, "init", "-q", "--bare", "-b", "main", str(self.bare))
        git(self.bare, "config", "http.receivepack", "true")
        for memory in (self.pulls, self.statuses, self.comments, self.sent, self.pushes, self.faults):
            memory.clear()
        self.protected, self.page = {"main"}, 100

    @property
    def base(self) -> str:
        """Where clients find it."""
        return f"http://127.0.0.1:{self._front.server_port}"

    @property
    def upstream(self) -> str:
        """Where the proxy finds the stand-in."""
        return f"http://127.0.0.1:{self._back.server_port}"

    @property
    def clone_url(self) -> str:
        """Of the repository, over HTTP."""
        return f"{self.base}/{PROJECT}.git"

    def close(self) -> None:
        """Stop both servers."""
        for server in (self._front, self._back):
            server.shutdown()
            server.server_close()

    def head(self, branch: str) -> str:
        """The commit of a branch, "" where it is not there."""
        done = subprocess.run(
            ["git", "rev-parse", "-q", "--verify", f"refs/heads/{branch}"], cwd=self.bare, capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    def writes(self) -> list[Sent]:
        """Requests that asked for a change."""
        return [each for each in self.sent if each.writes]

    def merge(self, number: int, how: Literal["merge", "squash", "rebase"] = "merge") -> str:
        """Merge a request as a person does with the button, and delete its branch; requests that stood on it go to its base."""
        pull = self.pulls[number - 1]
        base, head = self.head(pull["base"]), self.head(pull["head"])
        tree = git(self.bare, "merge-tree", "--write-tree", base, head)
        message = git(self.bare, "log", "-1", "--format=%B", head) if how == "rebase" else f"Merge #{number}"
        parents = ["-p", base, *(["-p", head] if how == "merge" else [])]
        rita = ("-c", "user.name=Rita", "-c", "user.email=r@example.invalid")
        made = git(self.bare, *rita, "commit-tree", tree, *parents, "-m", message)
        git(self.bare, "update-ref", f"refs/heads/{pull['base']}", made)
        git(self.bare, "update-ref", "-d", f"refs/heads/{pull['head']}")
        pull |= {"state": "closed", "merged": made, "sha": head}
        for other in self.pulls:
            if other["state"] == "open" and other["base"] == pull["head"]:
                other["base"] = pull["base"]
        return made


def repository(forge: StandIn, **_: str) -> tuple[int, Any]:
    """GET /repos/{owner}/{repo}."""
    facts: dict[str, Any] = {
        "name": NAME,
        "full_name": PROJECT,
        "html_url": f"{forge.base}/{PROJECT}",
        "url": f"{forge.base}/repos/{PROJECT}",
        "default_branch": "main",
    }
    facts["permissions"] = {"admin": False, "push": True, "pull": True}
    return 200, example(forge.description, "get", "/repos/{owner}/{repo}") | facts


def branch(forge: StandIn, name: str, **_: str) -> tuple[int, Any]:
    """GET …/branches/{branch}."""
    head = forge.head(unquote(name))
    if not head:
        return 404, {"message": "Branch not found", "documentation_url": "", "status": "404"}
    facts = {"name": unquote(name), "protected": unquote(name) in forge.protected}
    return 200, example(forge.description, "get", "/repos/{owner}/{repo}/branches/{branch}") | facts


def list_pulls(forge: StandIn, query: Mapping[str, str], **_: str) -> tuple[int, Any]:
    """GET …/pulls with state and head."""
    state, head = query.get("state", "open"), query.get("head", "")
    found = [pull for pull in forge.pulls if state in ("all", pull["state"]) and head in ("", f"{OWNER}:{pull['head']}")]
    return 200, [_pull(forge, pull, "list") for pull in reversed(found)]


def get_pull(forge: StandIn, number: str, **_: str) -> tuple[int, Any]:
    """GET …/pulls/{number}."""
    return 200, _pull(forge, forge.pulls[int(number) - 1])


def open_pull(forge: StandIn, body: Mapping[str, Any], **_: str) -> tuple[int, Any]:
    """POST …/pulls: as GitHub, one open request a branch, and none without a difference."""
    head, base = forge.head(body["head"]), forge.head(body["base"])
    problem = ""
    if not head or not base:
        problem = f"{'head' if not head else 'base'} does not exist"
    elif any(pull["state"] == "open" and pull["head"] == body["head"] for pull in forge.pulls):
        problem = f"A pull request already exists for {OWNER}:{body['head']}."
    elif not git(forge.bare, "rev-list", head, f"^{base}"):
        problem = f"No commits between {body['base']} and {body['head']}"
    if problem:
        return 422, {
            "message": "Validation Failed",
            "errors": [{"resource": "PullRequest", "code": "custom", "message": problem}],
            "documentation_url": "",
        }
    made = {"number": len(forge.pulls) + 1, "state": "open", "merged": "", "labels": [], "reviewers": [], "author": "robot"}
    forge.pulls.append(made | {key: body.get(key) for key in ("head", "base", "title", "body")} | {"draft": bool(body.get("draft"))})
    return 201, _pull(forge, forge.pulls[-1])


def edit_pull(forge: StandIn, number: str, body: Mapping[str, Any], **_: str) -> tuple[int, Any]:
    """PATCH …/pulls/{number}."""
    forge.pulls[int(number) - 1] |= {key: value for key, value in body.items() if key in ("title", "body", "base")}
    return 200, _pull(forge, forge.pulls[int(number) - 1])


def list_comments(forge: StandIn, number: str, **_: str) -> tuple[int, Any]:
    """GET …/pulls/{number}/comments."""
    return 200, [_comment(forge, each) for each in forge.comments.get(int(number), [])]


def add_comment(forge: StandIn, number: str, body: Mapping[str, Any], **_: str) -> tuple[int, Any]:
    """POST …/pulls/{number}/comments, on a line that the request's diff adds."""
    pull = forge.pulls[int(number) - 1]
    text = git(forge.bare, "diff", "--unified=0", f"{forge.head(pull['base'])}...{body['commit_id']}", "--", body["path"])
    added = [
        range(int(start), int(start) + int(count or 1))
        for start, count in re.findall(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", text, re.MULTILINE)
    ]
    if not any(body["line"] in lines for lines in added):
        return 422, {"message": "Validation Failed: line must be part of the diff", "errors": [], "documentation_url": ""}
    forge.comments.setdefault(int(number), []).append(dict(body))
    return 201, _comment(forge, dict(body))


def get_status(forge: StandIn, sha: str, **_: str) -> tuple[int, Any]:
    """GET …/commits/{ref}/status."""
    found = {each["context"]: each for each in forge.statuses.get(sha, [])}
    given = example(forge.description, "get", "/repos/{owner}/{repo}/commits/{ref}/status")
    one = (given.get("statuses") or [{}])[0]
    return 200, given | {"sha": sha, "statuses": [one | each for each in found.values()], "total_count": len(found)}


def set_status(forge: StandIn, sha: str, body: Mapping[str, Any], **_: str) -> tuple[int, Any]:
    """POST …/statuses/{sha}."""
    if git(forge.bare, "cat-file", "-t", sha) != "commit":
        return 422, {"message": f"No commit found for SHA: {sha}", "errors": [], "documentation_url": ""}
    forge.statuses.setdefault(sha, []).append(dict(body))
    return 201, example(forge.description, "post", "/repos/{owner}/{repo}/statuses/{sha}") | dict(body)


def add_labels(forge: StandIn, number: str, body: Any, **_: str) -> tuple[int, Any]:
    """POST …/issues/{number}/labels."""
    names = body["labels"] if isinstance(body, dict) else body
    labels = forge.pulls[int(number) - 1]["labels"]
    labels += [name for name in names if name not in labels]
    given = example(forge.description, "post", "/repos/{owner}/{repo}/issues/{issue_number}/labels")
    one = given[0] if given else {}
    return 200, [one | {"name": name} for name in names]


def ask_review(forge: StandIn, number: str, body: Mapping[str, Any], **_: str) -> tuple[int, Any]:
    """POST …/pulls/{number}/requested_reviewers: collaborators only, and not the author."""
    pull = forge.pulls[int(number) - 1]
    if any(name in ("robot", "stranger") for name in body.get("reviewers", [])):
        return 422, {"message": "Reviews may only be requested from collaborators.", "errors": [], "documentation_url": ""}
    people = (*body.get("reviewers", []), *body.get("team_reviewers", []))
    pull["reviewers"] += [name for name in people if name not in pull["reviewers"]]
    return 201, _pull(forge, pull, "list")


ROUTES: tuple[tuple[str, str, Callable[..., tuple[int, Any]]], ...] = (
    ("GET", r"/repos/acme/vision", repository),
    ("GET", r"/repos/acme/vision/branches/(?P<name>[^/]+)", branch),
    ("GET", r"/repos/acme/vision/pulls", list_pulls),
    ("GET", r"/repos/acme/vision/pulls/(?P<number>\d+)", get_pull),
    ("POST", r"/repos/acme/vision/pulls", open_pull),
    ("PATCH", r"/repos/acme/vision/pulls/(?P<number>\d+)", edit_pull),
    ("GET", r"/repos/acme/vision/pulls/(?P<number>\d+)/comments", list_comments),
    ("POST", r"/repos/acme/vision/pulls/(?P<number>\d+)/comments", add_comment),
    ("GET", r"/repos/acme/vision/commits/(?P<sha>\w+)/status", get_status),
    ("POST", r"/repos/acme/vision/statuses/(?P<sha>\w+)", set_status),
    ("POST", r"/repos/acme/vision/issues/(?P<number>\d+)/labels", add_labels),
    ("POST", r"/repos/acme/vision/pulls/(?P<number>\d+)/requested_reviewers", ask_review),
)


def _pull(forge: StandIn, pull: Mapping[str, Any], kind: str = "one") -> dict[str, Any]:
    path = "/repos/{owner}/{repo}/pulls" + ("" if kind == "list" else "/{pull_number}")
    found = example(forge.description, "get", path)
    found = dict(found[0] if isinstance(found, list) and found else found or {})
    number, root = pull["number"], f"{forge.base}/repos/{PROJECT}"
    found |= {key: pull[key] for key in ("number", "state", "title", "body", "draft")}
    found |= {"url": f"{root}/pulls/{number}", "issue_url": f"{root}/issues/{number}", "html_url": f"{forge.base}/{PROJECT}/pull/{number}"}
    found["node_id"] = f"PR_{number}"
    found["user"] = {**(found.get("user") or {}), "login": pull["author"]}
    for side in ("head", "base"):
        found[side] = {**(found.get(side) or {}), "ref": pull[side], "sha": forge.head(pull[side]) or pull.get("sha", "0" * 40)}
    found["merged_at"] = "2026-01-01T00:00:00Z" if pull["merged"] else None
    if kind == "one":
        found["merged"] = bool(pull["merged"])
    return found


def _comment(forge: StandIn, comment: Mapping[str, Any]) -> dict[str, Any]:
    found = example(forge.description, "get", "/repos/{owner}/{repo}/pulls/{pull_number}/comments")
    facts = {"url": f"{forge.base}/repos/{PROJECT}/pulls/comments/1"}
    return {**(found[0] if found else {}), **facts, "path": comment["path"], "line": comment["line"], "body": comment["body"]}


def graphql(forge: StandIn, body: Any) -> tuple[int, Any]:
    """The two mutations for drafts."""
    number = int(body["variables"]["input"]["pullRequestId"].removeprefix("PR_"))
    name = "convertPullRequestToDraft" if "convertPullRequestToDraft" in body["query"] else "markPullRequestReadyForReview"
    forge.pulls[number - 1]["draft"] = name == "convertPullRequestToDraft"
    return 200, {"data": {name: {"clientMutationId": None, "pullRequest": {"isDraft": forge.pulls[number - 1]["draft"]}}}}


class _Back:
    """Where the proxy's requests arrive."""

    @staticmethod
    def answer(request: Handler, forge: StandIn) -> None:
        status, value, headers = respond(
            forge, request.command, request.path, request.payload(), f"{forge.base}{urlsplit(request.path).path}"
        )
        request.give(status, json.dumps(value).encode(), {"Content-Type": "application/json; charset=utf-8", **headers})


def respond(forge: StandIn, method: str, target: str, payload: bytes, here: str) -> tuple[int, Any, dict[str, str]]:
    """The stand-in's answer: status, value and headers, lists in pages."""
    parts = urlsplit(target)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    body = json.loads(payload) if payload else None
    for verb, pattern, function in ROUTES:
        found = re.fullmatch(pattern, parts.path)
        if verb == method and found:
            status, value = function(forge, query=query, body=body, **found.groupdict())
            if isinstance(value, list) and status == 200 and method == "GET":
                page, size = int(query.get("page", 1)), min(int(query.get("per_page", 30)), forge.page)
                rest = {**query, "page": str(page + 1)}
                more = (
                    {"Link": f'<{here}?{"&".join(f"{key}={word}" for key, word in rest.items())}>; rel="next"'}
                    if len(value) > page * size
                    else {}
                )
                return status, value[(page - 1) * size : page * size], more
            return status, value, {}
    return 404, {"message": "Not Found", "documentation_url": "", "status": "404"}, {}


class _Front:
    """Where clients' requests arrive: git, GraphQL, and the interface behind the proxy."""

    @staticmethod
    def answer(request: Handler, forge: StandIn) -> None:
        path = urlsplit(request.path).path
        if path.startswith(f"/{PROJECT}.git/"):
            serve_git(request, forge.folder, f"/{OWNER}", forge.token, forge.pushes)
            return
        payload = request.payload()
        body = json.loads(payload) if payload else None
        if request.headers.get("Authorization") not in (f"token {forge.token}", f"Bearer {forge.token}"):
            quoted = {"message": f"Bad credentials: {request.headers.get('Authorization')}", "documentation_url": "", "status": "401"}
            _Front._give(request, forge, body, 401, json.dumps(quoted).encode(), {"Content-Type": "application/json"})
            return
        fault = next((each for each in forge.faults if each.times and each.method == request.command and re.search(each.path, path)), None)
        if fault is not None:
            fault.times -= 1
            if not fault.cut:
                _Front._give(
                    request,
                    forge,
                    body,
                    fault.status,
                    json.dumps(fault.body).encode(),
                    {"Content-Type": "application/json", **fault.headers},
                )
                return
        if path == "/graphql":
            status, value = graphql(forge, body)
            answer: tuple[int, bytes, dict[str, str]] = status, json.dumps(value).encode(), {"Content-Type": "application/json"}
        else:
            answer = _through(forge, request, payload)
        if fault is not None:
            forge.sent.append(Sent(request.command, request.path, 0, body))
            request.close_connection = True
            request.connection.shutdown(socket.SHUT_RDWR)
            return
        _Front._give(request, forge, body, *answer)

    @staticmethod
    def _give(request: Handler, forge: StandIn, sent: Any, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        forge.sent.append(Sent(request.command, request.path, status, sent))
        request.give(status, body, headers)


def _through(forge: StandIn, request: Handler, payload: bytes) -> tuple[int, bytes, dict[str, str]]:
    """The answer of the stand-in behind the proxy, or of the stand-in itself where there is none."""
    if not forge.proxy:
        status, value, more = respond(forge, request.command, request.path, payload, f"{forge.base}{urlsplit(request.path).path}")
        return status, json.dumps(value).encode(), {"Content-Type": "application/json; charset=utf-8", **more}
    headers = {name: request.headers[name] for name in ("Content-Type", "Accept", "X-GitHub-Api-Version") if name in request.headers}
    asked = urllib.request.Request(f"{forge.proxy}{request.path}", payload or None, headers, method=request.command)
    try:
        with urllib.request.urlopen(asked, timeout=120) as found:
            status, body, kept = found.status, found.read(), dict(found.headers)
    except urllib.error.HTTPError as error:
        with error:
            status, body, kept = error.code, error.read(), dict(error.headers)
    if "problem+json" in (kept.get("Content-Type") or kept.get("content-type") or "") or "sl-violations" in {name.lower() for name in kept}:
        told = body.decode() + next((value for name, value in kept.items() if name.lower() == "sl-violations"), "")
        forge.violations.append(f"{request.command} {request.path} {payload.decode()[:200]}: {told[:2000]}")
    return status, body, {name: value for name, value in kept.items() if name.lower() in ("content-type", "link")}
