"""GitHub and GitHub Enterprise Server over PyGithub. The operations used, and the scopes they need, are rows of `operations.GITHUB`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeVar
from urllib.parse import quote

import github
import requests
from github.PullRequest import PullRequest

from migrate_agent.agent.forge.base import CONTEXT, Check, LineNote, Project, Request, State
from migrate_agent.agent.forge.faults import Answer, Caller
from migrate_agent.agent.forge.remote import Address

T = TypeVar("T")
TIMEOUT = 60
STATES: dict[str, Literal["success", "failure"]] = {"success": "success"}


def call_github(call: Callable[[], T]) -> T:
    """The call's result. Raises `Answer` for every answer that is no success, and where none comes."""
    try:
        return call()
    except github.GithubException as error:
        data = error.data if isinstance(error.data, dict) else {}
        details = [
            str(item.get("message") or item.get("code") or "") if isinstance(item, dict) else str(item) for item in data.get("errors") or ()
        ]
        said = " ".join(dict.fromkeys(filter(None, (str(data.get("message") or error.message or ""), *details))))
        raise Answer(error.status, said, error.headers) from None
    except requests.RequestException as error:
        raise Answer(0, why(error)) from None


def why(error: requests.RequestException) -> str:
    """Why no answer came, without the address that was asked."""
    if isinstance(error, requests.exceptions.SSLError):
        return "its certificate is not trusted: give the authority's in REQUESTS_CA_BUNDLE"
    return "it took too long" if isinstance(error, requests.Timeout) else "the connection was refused or lost"


class GitHub:
    """`base.Forge` for one repository."""

    kind: Literal["github"] = "github"
    sign = "#"
    body_limit = 65_536

    def __init__(self, address: Address, token: str, caller: Caller | None = None) -> None:
        self._address = address
        self._caller = caller or Caller(address.host)
        self._client = github.Github(
            base_url=address.api, auth=github.Auth.Token(token), retry=None, timeout=TIMEOUT, per_page=100, verify=True, lazy=True
        )
        self._eager = self._client.withLazy(False)
        self._repo = self._client.get_repo(address.project)
        self._url = ""

    def _read(self, operation: str, call: Callable[[], T]) -> T:
        return self._caller.read(operation, lambda: call_github(call))

    def _write(self, operation: str, call: Callable[[], T]) -> T:
        return self._caller.write(operation, lambda: call_github(call))

    def project(self) -> Project:
        """The repository. GitHub tells what a user's token may; an app's token says nothing of it."""

        def look() -> Project:
            repository = self._eager.get_repo(self._address.project)
            rights = repository.raw_data.get("permissions")
            return Project(repository.full_name, repository.html_url, repository.default_branch, not rights or bool(rights.get("push")))

        described = self._read("looking at the repository", look)
        self._url = described.url
        return described

    def protected(self, branch: str) -> bool:
        """Whether a branch of this name is protected."""
        try:
            return bool(self._caller.read("looking at a branch", lambda: _present(lambda: self._branch(branch)["protected"])))
        except LookupError:
            return False

    def requests(self, prefix: str, branches: Sequence[str]) -> list[Request]:
        """All pull requests that are open, one page a hundred; and one look for each branch that has none of these."""
        opened = self._read("listing pull requests", lambda: [_request(pull) for pull in self._repo.get_pulls(state="open")])
        mine = [request for request in opened if request.branch.startswith(prefix)]
        owner = self._address.project.partition("/")[0]
        for branch in branches:
            if all(request.branch != branch for request in mine):
                latest = self._read("listing pull requests", partial(self._latest, f"{owner}:{branch}"))
                mine += [latest] if latest else []
        return mine

    def _latest(self, head: str) -> Request | None:
        requests = [_request(pull) for pull in self._repo.get_pulls(state="all", head=head)]
        return max(requests, key=lambda request: request.number, default=None)

    def notes(self, request: Request) -> list[LineNote]:
        """Review comments."""

        def look() -> list[LineNote]:
            return [LineNote(comment.path, comment.line or 0, comment.body) for comment in self._pull(request).get_review_comments()]

        return self._read("listing review comments", look)

    def check(self, commit: str) -> Check | None:
        """The latest status under our context."""

        def look() -> Check | None:
            for status in self._repo.get_commit(commit).get_combined_status().statuses:
                if status.context == CONTEXT:
                    return Check(STATES.get(status.state, "failure"), status.description or "")
            return None

        return self._read("looking at a commit's status", look)

    def open(self, branch: str, base: str, title: str, body: str, draft: bool) -> Request:
        """Open a pull request."""
        return self._write(
            f"opening a pull request for {branch}",
            lambda: _request(self._repo.create_pull(base=base, head=branch, title=title, body=body, draft=draft)),
        )

    def edit(self, request: Request, title: str | None = None, body: str | None = None, base: str | None = None) -> None:
        """Change what is given."""
        changes = {name: value for name, value in (("title", title), ("body", body), ("base", base)) if value is not None}
        self._write(f"changing #{request.number}", lambda: self._pull(request).edit(**changes))  # type: ignore[arg-type]

    def set_draft(self, request: Request, draft: bool) -> None:
        """Over GraphQL, since the REST interface cannot."""
        if draft:
            self._write(f"turning #{request.number} into a draft", lambda: self._full(request).convert_to_draft())
        else:
            self._write(f"marking #{request.number} as ready", lambda: self._full(request).mark_ready_for_review())

    def add_labels(self, request: Request, labels: Sequence[str]) -> None:
        """Labels that do not exist are made by GitHub. PyGithub sends a bare list, which the description does not know."""
        path = f"{self._repo.url}/issues/{request.number}/labels"
        said = {"labels": list(labels)}
        self._write(f"labelling #{request.number}", lambda: self._client.requester.requestJsonAndCheck("POST", path, input=said))

    def ask_review(self, request: Request, people: Sequence[str]) -> None:
        """People, and teams (`organisation/team`). The author, whom GitHub refuses, is left out."""
        users = [name for name in people if "/" not in name and name.lower() != request.author.lower()]
        teams = [name.partition("/")[2] for name in people if "/" in name]
        if users or teams:
            self._write(f"asking for reviews of #{request.number}", lambda: self._pull(request).create_review_request(users, teams))

    def add_note(self, request: Request, commit: str, note: LineNote) -> None:
        """A review comment on a line of the new side."""
        self._write(
            f"commenting on #{request.number}",
            lambda: self._pull(request).create_review_comment(note.text, commit, note.path, line=note.line, side="RIGHT"),
        )

    def set_check(self, commit: str, check: Check, url: str) -> None:
        """A commit status."""
        link = {"target_url": url} if url else {}
        self._write(
            "setting a commit status",
            lambda: self._repo.get_commit(commit).create_status(check.state, description=check.line, context=CONTEXT, **link),
        )

    def file_url(self, ref: str, path: str) -> str:
        """`blob` serves folders too, by a redirection."""
        web = self._url or f"https://{self._address.host}/{self._address.project}"
        return f"{web}/blob/{quote(ref)}/{quote(path)}"

    def close(self) -> None:
        """Close connections."""
        self._client.close()

    def _pull(self, request: Request) -> PullRequest:
        return self._repo.get_pull(request.number)

    def _full(self, request: Request) -> PullRequest:
        pull = self._pull(request)
        pull.complete()
        return pull

    def _branch(self, name: str) -> dict[str, Any]:
        """PyGithub leaves slashes in the name as they are, which the description has no path for."""
        _, branch = self._client.requester.requestJsonAndCheck("GET", f"{self._repo.url}/branches/{quote(name, safe='')}")
        return dict(branch)


def _present(call: Callable[[], T]) -> T:
    """A 404 as `LookupError`."""
    try:
        return call_github(call)
    except Answer as answer:
        if answer.status == 404:
            raise LookupError(answer.message) from None
        raise


def _request(pull: PullRequest) -> Request:
    """What is told of a pull request in a list. A merged one has a time of merging there."""
    state: State = "open" if pull.state == "open" else "merged" if pull.merged_at else "closed"
    author = pull.user.login if pull.user else ""
    return Request(
        pull.number, pull.head.ref, pull.base.ref, pull.head.sha, state, pull.draft, pull.title, pull.body or "", pull.html_url, author
    )
