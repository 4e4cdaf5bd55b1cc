"""A stand-in for GitLab, with a memory, over a real repository where a test gives it a folder. It is not GitLab, and no description checks it:
GitLab publishes none in a package registry.
"""

from __future__ import annotations

import json
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from migrate_agent.tests.agent.forge.served import Handler, serve, serve_git
from migrate_agent.tests.agent.forge.standin import Sent
from migrate_agent.tests.agent.repositories import git

TOKEN, PROJECT = "glpat-canaryXcanaryY0123", "group/sub/vision"
ROOT = "/api/v4/projects/group%2Fsub%2Fvision"


class StandIn:
    """A project with merge requests, in the words of https://docs.gitlab.com/api/merge_requests/."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.statuses: dict[str, list[dict[str, Any]]] = {}
        self.discussions: dict[int, list[dict[str, Any]]] = {}
        self.sent: list[Sent] = []
        self.pushes: list[str] = []
        self.failing: list[tuple[int, dict[str, str]]] = []
        self.bare: Path | None = None
        self.server: ThreadingHTTPServer = serve(self._serve)

    def reset(self, folder: Path | None = None) -> None:
        """Nothing remembered; with a folder, an empty repository in it that is served over HTTP."""
        for memory in (self.requests, self.statuses, self.discussions, self.sent, self.pushes, self.failing):
            memory.clear()
        self.bare = folder / "vision.git" if folder else None
        if folder and self.bare:
            folder.mkdir()
            git(folder, "init", "-q", "--bare", "-b", "main", str(self.bare))
            git(self.bare, "config", "http.receivepack", "true")

    def writes(self) -> list[Sent]:
        """Requests that asked for a change."""
        return [each for each in self.sent if each.writes]

    def head(self, branch: str) -> str:
        """The commit of a branch; a made-up one where no repository is served."""
        return git(self.bare, "rev-parse", f"refs/heads/{branch}") if self.bare else "a" * 40

    def merge(self, number: int) -> None:
        """Merge with a merge commit and delete the branch; requests that went into it go where it went."""
        request, bare = self.requests[number - 1], self.bare
        assert bare is not None
        source, target = request["source_branch"], request["target_branch"]
        head = self.head(source)
        made = git(bare, "commit-tree", f"{head}^{{tree}}", "-p", self.head(target), "-p", head, "-m", f"Merge !{number}")
        git(bare, "update-ref", f"refs/heads/{target}", made)
        git(bare, "update-ref", "-d", f"refs/heads/{source}")
        request |= {"state": "merged", "sha": head}
        for other in self.requests:
            if other["state"] == "opened" and other["target_branch"] == source:
                other["target_branch"] = target

    @property
    def base(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server.server_port}"

    def _serve(self, request: Handler) -> None:
        parts = urlsplit(request.path)
        if self.bare and parts.path.startswith(f"/{PROJECT}.git/"):
            serve_git(request, self.bare.parent, f"/{PROJECT.rpartition('/')[0]}", TOKEN, self.pushes)
            return
        payload = request.payload()
        self.sent.append(Sent(request.command, parts.path, 0))
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

    def _fresh(self, request: dict[str, Any]) -> dict[str, Any]:
        """A request with the commit that its branch has now."""
        return request | ({"sha": self.head(request["source_branch"])} if request["state"] == "opened" else {})

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
                    self._fresh(each)
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
