"""Doing what a plan says, one action after the other, and saying what it would be. What was done stays done where a later one fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from migrate_agent.agent.forge.base import Forge, ForgeError, Request
from migrate_agent.agent.pr.plan import Action, Draft, Edit, Label, Open, Push, Remark, Review, Seen, SetCheck, numbered
from migrate_agent.agent.pr.push import GitRemote


@dataclass
class Doer:
    """Does actions. `link` gives the page that a commit status of a branch leads to."""

    forge: Forge
    remote: GitRemote
    seen: Seen
    link: Callable[[str], str]
    tell: Callable[[str], None]
    warn: Callable[[str], None]
    requests: dict[str, Request] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.requests = {branch: request for branch, request in self.seen.requests.items() if request.state == "open"}

    def do(self, action: Action) -> None:
        """One action. Raises `ForgeError`; that nobody could be asked for a review is a warning only."""
        self.tell(headline(action, self._names()))
        try:
            self._do(action)
        except ForgeError as error:
            if not isinstance(action, Review):
                raise
            self.warn(error.message)

    def _do(self, action: Action) -> None:
        forge = self.forge
        match action:
            case Push(branch, commit, expected):
                self.remote.push(branch, commit, expected)
            case Open(branch, base, title, body, draft):
                self.requests[branch] = forge.open(branch, base, title, self._text(body), draft)
            case Edit(branch, body, base):
                forge.edit(self.requests[branch], body=None if body is None else self._text(body), base=base)
            case Draft(branch, draft):
                forge.set_draft(self.requests[branch], draft)
            case Label(branch, labels):
                forge.add_labels(self.requests[branch], labels)
            case Review(branch, people):
                forge.ask_review(self.requests[branch], people)
            case Remark(branch, commit, note):
                forge.add_note(self.requests[branch], commit, note)
            case SetCheck(branch, commit, check):
                forge.set_check(commit, check, self.link(branch))

    def _names(self) -> dict[str, str]:
        return {branch: f"{self.forge.sign}{request.number}" for branch, request in self.requests.items()}

    def _text(self, text: str) -> str:
        return numbered(text, self._names())


def headline(action: Action, names: Mapping[str, str]) -> str:
    """An action in one line. `names` are the requests' (`#12`) by branch."""
    name = names.get(action.branch, action.branch)
    match action:
        case Push(branch, commit, expected):
            return f"push {commit[:12]} to {branch}" + (f" (in place of {expected[:12]})" if expected else " (new)")
        case Open(branch, base, title, _, draft):
            return f"open a {'draft ' if draft else ''}request: {branch} into {base}: {title}"
        case Edit(_, body, base):
            return f"change {name}: " + " and ".join([f"base to {base}"] * (base is not None) + ["text"] * (body is not None))
        case Draft(_, draft):
            return f"turn {name} into a draft" if draft else f"mark {name} as ready"
        case Label(_, labels):
            return f"label {name}: {', '.join(labels)}"
        case Review(_, people):
            return f"ask for reviews of {name}: {', '.join(people)}"
        case Remark(_, _, note):
            return f"comment on {name}, {note.path}:{note.line}: {note.text}"
        case SetCheck(_, commit, check):
            return f"set the status of {commit[:12]}: {check.state}, {check.line}"


def spelt_out(action: Action, names: Mapping[str, str]) -> list[str]:
    """An action with all that it sends, for a dry run."""
    lines = [headline(action, names)]
    if isinstance(action, (Open, Edit)) and action.body is not None:
        lines += [f"    {line}".rstrip() for line in numbered(action.body, names).splitlines()]
    return lines
