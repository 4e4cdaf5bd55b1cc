"""GitLab, on gitlab.com or self-hosted, over python-gitlab. The operations used are rows of `operations.GITLAB`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeVar
from urllib.parse import quote

import gitlab
import requests
from gitlab.v4.objects import ProjectMergeRequest

from migrate_agent.agent.forge.base import CONTEXT, Check, Health, LineNote, Project, Request, State
from migrate_agent.agent.forge.faults import Answer, Caller
from migrate_agent.agent.forge.github import why
from migrate_agent.agent.forge.remote import Address

T = TypeVar("T")
TIMEOUT = 60
DEVELOPER = 30
"""The access level from which branches may be pushed."""
STATES: dict[str, State] = {"opened": "open", "locked": "open", "merged": "merged", "closed": "closed"}
DRAFT = "Draft: "


class Client(gitlab.Gitlab):
    """python-gitlab without waits of its own, which nobody is told of; keeps the headers of the last answer, which its errors lack."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.headers_seen: Mapping[str, str] = {}
        self.session.hooks["response"].append(self._note)

    def _note(self, response: requests.Response, *arguments: Any, **options: Any) -> None:
        self.headers_seen = dict(response.headers)

    def http_request(self, *arguments: Any, **options: Any) -> requests.Response:
        """One request, one answer."""
        return super().http_request(*arguments, **{**options, "obey_rate_limit": False})


def call_gitlab(client: Client, call: Callable[[], T]) -> T:
    """The call's result. Raises `Answer` for every answer that is no success, and where none comes."""
    try:
        return call()
    except gitlab.GitlabError as error:
        said = error.error_message
        text = "; ".join(map(str, said)) if isinstance(said, (list, tuple)) else str(said)
        raise Answer(error.response_code or 0, text, client.headers_seen) from None
    except requests.RequestException as error:
        raise Answer(0, why(error)) from None


class GitLab:
    """`base.Forge` for one project."""

    kind: Literal["gitlab"] = "gitlab"
    sign = "!"
    body_limit = 1_048_576

    def __init__(self, address: Address, token: str, caller: Caller | None = None) -> None:
        self._address = address
        self._caller = caller or Caller(address.host)
        root = address.api.removesuffix("/api/v4")
        self._client = Client(
            root, private_token=token, timeout=TIMEOUT, ssl_verify=True, per_page=100, retry_transient_errors=False, keep_base_url=True
        )
        self._project = self._client.projects.get(address.project, lazy=True)
        self._url = f"{root}/{address.project}"

    def _read(self, operation: str, call: Callable[[], T]) -> T:
        return self._caller.read(operation, lambda: call_gitlab(self._client, call))

    def _write(self, operation: str, call: Callable[[], T]) -> T:
        return self._caller.write(operation, lambda: call_gitlab(self._client, call))

    def project(self) -> Project:
        """The project."""
        described = self._read("looking at the project", lambda: self._client.projects.get(self._address.project))
        rights = [access["access_level"] for access in (described.attributes.get("permissions") or {}).values() if access]
        self._url = described.web_url
        return Project(described.path_with_namespace, described.web_url, described.default_branch, not rights or max(rights) >= DEVELOPER)

    def protected(self, branch: str) -> bool:
        """Whether a branch of this name is protected."""
        try:
            return bool(
                self._caller.read("looking at a branch", lambda: self._present(lambda: self._project.branches.get(branch).protected))
            )
        except LookupError:
            return False

    def requests(self, prefix: str, branches: Sequence[str]) -> list[Request]:
        """All merge requests that are open, one page a hundred; and one look for each branch that has none of these."""
        opened = self._read(
            "listing merge requests", lambda: [_request(item) for item in self._project.mergerequests.list(state="opened", get_all=True)]
        )
        mine = [request for request in opened if request.branch.startswith(prefix)]
        for branch in branches:
            if all(request.branch != branch for request in mine):
                latest = self._read("listing merge requests", partial(self._latest, branch))
                mine += [latest] if latest else []
        return mine

    def _latest(self, branch: str) -> Request | None:
        requests = [_request(item) for item in self._project.mergerequests.list(source_branch=branch, state="all", get_all=True)]
        return max(requests, key=lambda request: request.number, default=None)

    def notes(self, request: Request) -> list[LineNote]:
        """Discussions on lines."""

        def look() -> list[LineNote]:
            discussions = self._lazy(request).discussions.list(get_all=True)
            notes = [note for discussion in discussions for note in discussion.attributes["notes"] if note.get("position")]
            return [LineNote(note["position"]["new_path"], note["position"].get("new_line") or 0, note["body"]) for note in notes]

        return self._read("listing discussions", look)

    def check(self, commit: str) -> Check | None:
        """The latest status under our name."""

        def look() -> Check | None:
            statuses = self._project.commits.get(commit, lazy=True).statuses.list(name=CONTEXT, get_all=True)
            last = max(statuses, key=lambda status: int(status.id), default=None)
            if last is None:
                return None
            state: Health = "success" if last.status == "success" else "failure"
            return Check(state, last.description or "")

        return self._read("looking at a commit's status", look)

    def open(self, branch: str, base: str, title: str, body: str, draft: bool) -> Request:
        """Open a merge request."""
        said = {"source_branch": branch, "target_branch": base, "title": f"{DRAFT if draft else ''}{title}", "description": body}
        return self._write(f"opening a merge request for {branch}", lambda: _request(self._project.mergerequests.create(said)))

    def edit(self, request: Request, title: str | None = None, body: str | None = None, base: str | None = None) -> None:
        """Change what is given."""
        changes = {name: value for name, value in (("title", title), ("description", body), ("target_branch", base)) if value is not None}
        self._put(f"changing !{request.number}", request, changes)

    def set_draft(self, request: Request, draft: bool) -> None:
        """GitLab keeps it in the title."""
        plain = request.title.removeprefix(DRAFT)
        self._put(f"changing !{request.number}", request, {"title": f"{DRAFT if draft else ''}{plain}"})

    def add_labels(self, request: Request, labels: Sequence[str]) -> None:
        """Labels that do not exist are made by GitLab."""
        self._put(f"labelling !{request.number}", request, {"add_labels": ",".join(labels)})

    def ask_review(self, request: Request, people: Sequence[str]) -> None:
        """People by their user names; groups cannot be asked. Who is asked already stays."""
        users = [name for name in people if "/" not in name]
        numbers = [number for name in users for number in self._read(f"looking up {name}", partial(self._people, name))]
        if numbers:
            present = self._read("looking at a merge request", lambda: self._project.mergerequests.get(request.number))
            assigned = [reviewer["id"] for reviewer in present.attributes.get("reviewers") or ()]
            self._put(f"asking for reviews of !{request.number}", request, {"reviewer_ids": [*dict.fromkeys((*assigned, *numbers))]})

    def add_note(self, request: Request, commit: str, note: LineNote) -> None:
        """A discussion on a line of the new side."""
        present = self._read("looking at a merge request", lambda: self._project.mergerequests.get(request.number))
        refs: dict[str, str] = present.attributes.get("diff_refs") or {}
        position = {"position_type": "text", "new_path": note.path, "old_path": note.path, "new_line": note.line, **refs}
        self._write(
            f"commenting on !{request.number}",
            lambda: self._lazy(request).discussions.create({"body": note.text, "position": position}),
        )

    def set_check(self, commit: str, check: Check, url: str) -> None:
        """A commit status."""
        state = "success" if check.state == "success" else "failed"
        said = {"state": state, "name": CONTEXT, "description": check.line, **({"target_url": url} if url else {})}
        self._write("setting a commit status", lambda: self._project.commits.get(commit, lazy=True).statuses.create(said))

    def file_url(self, ref: str, path: str) -> str:
        """The page of a file."""
        return f"{self._url}/-/blob/{quote(ref)}/{quote(path)}"

    def close(self) -> None:
        """Close connections."""
        self._client.session.close()

    def _present(self, call: Callable[[], T]) -> T:
        """A 404 as `LookupError`."""
        try:
            return call_gitlab(self._client, call)
        except Answer as answer:
            if answer.status == 404:
                raise LookupError(answer.message) from None
            raise

    def _people(self, name: str) -> list[int]:
        return [int(user.id) for user in self._client.users.list(username=name, get_all=True)]

    def _lazy(self, request: Request) -> ProjectMergeRequest:
        return self._project.mergerequests.get(request.number, lazy=True)

    def _put(self, operation: str, request: Request, changes: dict[str, Any]) -> None:
        self._write(operation, lambda: self._project.mergerequests.update(request.number, changes))


def _request(merge_request: Any) -> Request:
    author = (merge_request.attributes.get("author") or {}).get("username", "")
    return Request(
        number=merge_request.iid,
        branch=merge_request.source_branch,
        base=merge_request.target_branch,
        head=merge_request.attributes.get("sha") or "",
        state=STATES[merge_request.state],
        draft=bool(merge_request.attributes.get("draft")),
        title=merge_request.title,
        body=merge_request.description or "",
        url=merge_request.web_url,
        author=author,
    )
