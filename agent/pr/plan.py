"""From what should be and what is to what has to be done: a pure function, so that it can be read, tested and shown without doing anything."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from migrate_agent.agent.forge.base import Check, LineNote, Request

BEGIN = "<!-- migrate-agent: from here to the end mark the text is written by a program; write below or above it -->"
END = "<!-- /migrate-agent -->"
HELD, HELD_END = "<!-- migrate-agent held -->", "<!-- /migrate-agent held -->"
_ASKED = re.compile(r"^<!-- migrate-agent asked: (.*) -->\n?", re.MULTILINE)
_BANNER = re.compile(r"<!-- migrate-agent held.*?<!-- /migrate-agent held -->", re.DOTALL)
_NUMBER = re.compile(r"\{\{request:([^}]*)\}\}")


@dataclass(frozen=True)
class Wanted:
    """A request as it should be. In `body`, `{{request:BRANCH}}` stands for the number of that branch's request."""

    branch: str
    base: str
    commit: str
    title: str
    body: str
    check: Check
    notes: tuple[LineNote, ...] = ()
    draft: bool = False
    labels: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Held:
    """A request of a unit that is not verified any more, or cannot go on."""

    branch: str
    reason: str


@dataclass(frozen=True)
class Seen:
    """What is: our branches on the remote, their latest requests, and what the forge says of commits and lines."""

    heads: Mapping[str, str] = field(default_factory=dict)
    sign: str = "#"
    """What stands before a request's number."""
    requests: Mapping[str, Request] = field(default_factory=dict)
    checks: Mapping[str, Check] = field(default_factory=dict)
    notes: Mapping[int, Sequence[LineNote]] = field(default_factory=dict)

    def names(self) -> dict[str, str]:
        """Branch → its open request as people write it."""
        return {branch: f"{self.sign}{request.number}" for branch, request in self.requests.items() if request.state == "open"}


@dataclass(frozen=True)
class Push:
    """Put a commit on a branch of the remote, if that is still at `expected` ("": not there)."""

    branch: str
    commit: str
    expected: str


@dataclass(frozen=True)
class Open:
    """Open a request."""

    branch: str
    base: str
    title: str
    body: str
    draft: bool


@dataclass(frozen=True)
class Edit:
    """Change a request's text or base (`None`: not)."""

    branch: str
    body: str | None = None
    base: str | None = None


@dataclass(frozen=True)
class Draft:
    """Turn a request into a draft, or say that it is ready."""

    branch: str
    draft: bool


@dataclass(frozen=True)
class Label:
    """Add labels."""

    branch: str
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Review:
    """Ask for reviews."""

    branch: str
    people: tuple[str, ...]


@dataclass(frozen=True)
class Remark:
    """Remark on a line."""

    branch: str
    commit: str
    note: LineNote


@dataclass(frozen=True)
class SetCheck:
    """Set a commit's status."""

    branch: str
    commit: str
    check: Check


Action = Push | Open | Edit | Draft | Label | Review | Remark | SetCheck


@dataclass(frozen=True)
class Plan:
    """What has to be done, in this order, and what a person has to know."""

    actions: tuple[Action, ...]
    told: tuple[str, ...] = ()


def plan(wants: Sequence[Wanted], holds: Sequence[Held], present: Seen) -> Plan:
    """Nothing where all is as it should be. `wants` is bottom first."""
    actions: list[Action] = []
    messages: list[str] = []
    closed: set[str] = set()
    for want in wants:
        request = present.requests.get(want.branch)
        if request is not None and request.state == "closed":
            messages.append(
                f"{want.branch}: request #{request.number} was closed without merging: reopen it, or delete the branch, to go on"
            )
            closed.add(want.branch)
        elif want.base in closed:
            messages.append(f"{want.branch}: stands on {want.base}, whose request is closed: left as it is")
            closed.add(want.branch)
        else:
            actions += _towards(want, request if request is not None and request.state == "open" else None, present)
    for hold in holds:
        request = present.requests.get(hold.branch)
        if request is not None and request.state == "open":
            actions += _hold(hold, request, present)
    return Plan(tuple(actions), tuple(messages))


def _towards(want: Wanted, request: Request | None, present: Seen) -> list[Action]:
    actions: list[Action] = []
    head = present.heads.get(want.branch, "")
    if head != want.commit:
        actions.append(Push(want.branch, want.commit, head))
    if request is None:
        actions.append(Open(want.branch, want.base, want.title, framed("", want.body), want.draft))
    elif request.base != want.base:
        actions.append(Edit(want.branch, base=want.base))
    if request is not None and request.draft and HELD in request.body and not want.draft:
        actions.append(Draft(want.branch, False))
    before = noted_requests(request.body) if request is not None else ()
    labels = tuple(name for name in want.labels if f"label:{name}" not in before)
    people = tuple(name for name in want.reviewers if f"reviewer:{name}" not in before)
    if labels:
        actions.append(Label(want.branch, labels))
    if people:
        actions.append(Review(want.branch, people))
    have = {(note.path, note.text) for note in (present.notes.get(request.number, ()) if request is not None else ())}
    actions += [Remark(want.branch, want.commit, note) for note in want.notes if (note.path, note.text) not in have]
    if present.checks.get(want.commit) != want.check:
        actions.append(SetCheck(want.branch, want.commit, want.check))
    # Last of all: what was asked is noted once it was asked, so that a run that was cut short asks again.
    noted = (*before, *(f"label:{name}" for name in labels), *(f"reviewer:{name}" for name in people))
    block = with_noted_requests(want.body, noted)
    if request is None:
        if noted:
            actions.append(Edit(want.branch, body=framed("", block)))
    elif numbered(framed(request.body, block), present.names()) != request.body:
        actions.append(Edit(want.branch, body=framed(request.body, block)))
    return actions


def _hold(hold: Held, request: Request, present: Seen) -> list[Action]:
    actions: list[Action] = []
    if not request.draft:
        actions.append(Draft(hold.branch, True))
    check = Check("failure", hold.reason[:140])
    if present.checks.get(request.head) != check:
        actions.append(SetCheck(hold.branch, request.head, check))
    body = framed(request.body, held_block(request.body, hold.reason, ours=not request.draft or HELD in request.body))
    if body != request.body:
        actions.append(Edit(hold.branch, body=body))
    return actions


def held_block(body: str, reason: str, ours: bool) -> str:
    """Our part of a text with the reason on top. `ours` says that the request is a draft for this reason alone, and is ready without it."""
    _, _, rest = body.replace("\r\n", "\n").partition(BEGIN)
    block = _BANNER.sub("", rest.partition(END)[0]).strip()
    mark = (HELD, HELD_END) if ours else ("<!-- migrate-agent held as draft -->", HELD_END)
    text = " ".join(reason.split())
    return f"{mark[0]}\n> [!CAUTION]\n> **Not verified any more.** {text}\n{mark[1]}\n\n{block}"


def framed(present: str, block: str) -> str:
    """The text with our part replaced; what people wrote around it stays."""
    text = f"{BEGIN}\n{block.strip()}\n{END}"
    present = present.replace("\r\n", "\n")
    before, begun, rest = present.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if begun and ended:
        return f"{before}{text}{after}"
    return f"{text}\n\n{present}" if present else text


def noted_requests(body: str) -> tuple[str, ...]:
    """Labels and reviewers that were asked for already, as the text notes them."""
    match = _ASKED.search(body)
    return tuple(match[1].split(", ")) if match else ()


def with_noted_requests(block: str, names: Sequence[str]) -> str:
    """The text with the note of what was asked for."""
    return f"{block.strip()}\n\n<!-- migrate-agent asked: {', '.join(dict.fromkeys(names))} -->" if names else block


def numbered(text: str, names: Mapping[str, str]) -> str:
    """The text with the names of requests (`#12`); a branch without one is named itself."""
    return _NUMBER.sub(lambda match: names.get(match[1], f"`{match[1]}`"), text)
