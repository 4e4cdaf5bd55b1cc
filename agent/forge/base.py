"""What the pull-request command needs of a forge, in the words of no forge in particular."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from migrate_agent.agent.config.errors import UserError

State = Literal["open", "merged", "closed"]
Health = Literal["success", "failure"]
CONTEXT = "migrate-agent/verify"
"""Name of the commit status."""


class ForgeError(UserError):
    """The forge said no, or did not answer: one line with what to do. A second run goes on where this one stopped."""

    exit_status = 3


@dataclass(frozen=True)
class Request:
    """A pull request (GitHub) or merge request (GitLab). `head` is the commit that its branch had when the forge was asked."""

    number: int
    branch: str
    base: str
    head: str
    state: State
    draft: bool
    title: str
    body: str
    url: str
    author: str = ""


@dataclass(frozen=True)
class LineNote:
    """A remark on a line of the new side of a request's diff (1-based)."""

    path: str
    line: int
    text: str


class Check(NamedTuple):
    """A commit status under `CONTEXT`: its state and its line."""

    state: Health
    line: str


@dataclass(frozen=True)
class Project:
    """The repository on the forge. `writable` is whether the token may push, as far as the forge tells."""

    path: str
    url: str
    default_branch: str
    writable: bool = True


class Forge(Protocol):
    """The few operations. All raise `ForgeError`; numbers are those that people see.

    A write that was done is not repeated; a read is repeated where a fault may pass.
    """

    @property
    def kind(self) -> Literal["github", "gitlab"]:
        """Which one it is."""
        ...

    sign: str
    """What stands before a request's number."""
    body_limit: int
    """Characters that a request's text may have."""

    def project(self) -> Project:
        """The repository."""
        ...

    def protected(self, branch: str) -> bool:
        """Whether the forge protects a branch of this name; False for one that does not exist."""
        ...

    def requests(self, prefix: str, branches: Sequence[str]) -> list[Request]:
        """The open requests whose branch begins with `prefix`, and for each of `branches` without one, the latest that it had."""
        ...

    def notes(self, request: Request) -> list[LineNote]:
        """The remarks on lines that a request has, ours and others'."""
        ...

    def check(self, commit: str) -> Check | None:
        """The status of a commit under `CONTEXT`."""
        ...

    def open(self, branch: str, base: str, title: str, body: str, draft: bool) -> Request:
        """Open a request."""
        ...

    def edit(self, request: Request, title: str | None = None, body: str | None = None, base: str | None = None) -> None:
        """Change what is given."""
        ...

    def set_draft(self, request: Request, draft: bool) -> None:
        """Turn a request into a draft, or say that it is ready."""
        ...

    def add_labels(self, request: Request, labels: Sequence[str]) -> None:
        """Add labels; the others stay."""
        ...

    def ask_review(self, request: Request, people: Sequence[str]) -> None:
        """Ask people (`name`) and teams (`organisation/team`) for a review."""
        ...

    def add_note(self, request: Request, commit: str, note: LineNote) -> None:
        """Remark on a line of the diff."""
        ...

    def set_check(self, commit: str, check: Check, url: str) -> None:
        """Set the status of a commit under `CONTEXT`."""
        ...

    def file_url(self, ref: str, path: str) -> str:
        """The page of a file or folder at a branch or commit."""
        ...

    def close(self) -> None:
        """Close connections."""
        ...
