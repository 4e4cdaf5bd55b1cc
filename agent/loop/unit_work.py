"""What a run has made of one unit so far, as one value: a node loads it once, hands it on, and what it changed is written once.

Each part is a file in the unit's folder, so that people can read it and a resumed run finds it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from migrate_agent.agent.config.json_files import read, write, write_text
from migrate_agent.agent.model.interface import Attempt
from migrate_agent.tools.types import Draft, Evidence, UnitReport


@dataclass(frozen=True)
class Ensemble:
    """Proposals of further models, to be tried when the one that came with them is not verified."""

    after: int
    """Attempts that the unit had when the models were asked."""
    proposals: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True)
class UnitWork:
    """The parts of one unit's work; `None`, or empty, is a part that is not there yet."""

    folder: Path
    attempts: tuple[Attempt, ...] = ()
    """Proposals made for the unit, oldest first."""
    texts: Mapping[str, str] | None = None
    """The latest proposal of a model, a known repair or a person: `file:name` → text."""
    ensemble: Ensemble | None = None
    hint: str = ""
    """What the user told the model, in a session."""
    answer: str = ""
    """The model's answer to the user's last question."""
    evidence: Evidence | None = None
    """On the latest draft that was verified."""
    draft: Draft | None = None
    rules: Draft | None = None
    """The draft of the rules alone."""
    result: UnitReport | None = None
    """How the unit ended."""
    waits_for: tuple[str, ...] = ()
    """The cycle of a unit that was accepted on the condition that its whole cycle is."""

    def drafted(self) -> Draft:
        """The latest draft. Raises `LookupError` before the first one."""
        if self.draft is None:
            raise LookupError(f"{self.folder.name} has no draft yet")
        return self.draft

    def with_attempt(self, attempt: Attempt) -> UnitWork:
        """The work with one more attempt, in the place of one with the same number."""
        return replace(self, attempts=(*(other for other in self.attempts if other.number != attempt.number), attempt))

    def with_evidence(self, number: int, evidence: Evidence) -> UnitWork:
        """The work with the evidence on the attempt of this number, which is the unit's latest evidence."""
        attempts = tuple(replace(attempt, evidence=evidence) if attempt.number == number else attempt for attempt in self.attempts)
        return replace(self, evidence=evidence, attempts=attempts)


class SettledUnit(NamedTuple):
    """What units later in the plan need to know of one that ended."""

    report: UnitReport
    waits: bool
    """Whether it waits for its cycle."""
    texts: Mapping[str, str]
    """Its latest proposal, empty where only the rules wrote it."""


class Part(NamedTuple):
    """A field of `UnitWork` that is a file of JSON."""

    field: str
    file: str
    kind: type


# In the order of writing. A kill between two files leaves the node undone, and it is done again on what is there. So evidence comes before the
# draft that it belongs to: `cycles` verifies again where the stored draft is another one. The result comes before the mark that the unit waits:
# a cycle is concluded again as long as one of its units is marked.
PARTS = (
    Part("texts", "overrides.json", dict),
    Part("ensemble", "ensemble.json", Ensemble),
    Part("evidence", "evidence.json", Evidence),
    Part("draft", "draft.json", Draft),
    Part("rules", "rules.json", Draft),
    Part("result", "result.json", UnitReport),
)
TEXTS = (("hint", "hint.txt"), ("answer", "answer.md"))
WAITING = "waiting.json"


def load_work(folder: Path, attempts: int) -> UnitWork:
    """The work in a unit's folder, with its first `attempts` attempts.

    A later attempt is what a node wrote that was killed before its checkpoint: the node is done again, and writes it again.
    """
    parts: dict[str, Any] = {part.field: read(folder / part.file, part.kind) for part in PARTS if (folder / part.file).exists()}
    texts: dict[str, Any] = {field: (folder / file).read_text(encoding="utf-8") for field, file in TEXTS if (folder / file).exists()}
    return UnitWork(folder, _load_attempts(folder, attempts), **parts, **texts, waits_for=_waits_for(folder))


def save_work(before: UnitWork, after: UnitWork) -> None:
    """Write the parts that a node changed. Doing this again changes nothing."""
    folder = after.folder
    for field, file in TEXTS:
        if getattr(after, field) != getattr(before, field):
            write_text(folder / file, getattr(after, field))
    for part in PARTS:
        value = getattr(after, part.field)
        if value is not getattr(before, part.field):
            write(folder / part.file, value)
    for attempt in after.attempts:
        if not any(attempt is earlier for earlier in before.attempts):
            write(folder / "attempts" / f"{attempt.number:04d}.json", attempt)
    if after.waits_for != before.waits_for:
        _mark_waiting(folder, after.waits_for)


def load_settled(folder: Path) -> SettledUnit:
    """How the unit of this folder ended. Raises `FileNotFoundError` where it did not end yet."""
    texts = folder / "overrides.json"
    report = read(folder / "result.json", UnitReport)
    return SettledUnit(report, (folder / WAITING).exists(), read(texts, dict) if texts.exists() else {})


def load_draft(folder: Path) -> Draft:
    """The latest draft in a unit's folder. Raises `FileNotFoundError` before the first one."""
    return read(folder / "draft.json", Draft)


def reopen_work(folder: Path) -> None:
    """Forget how the unit of this folder ended."""
    (folder / "result.json").unlink(missing_ok=True)
    (folder / WAITING).unlink(missing_ok=True)


def _load_attempts(folder: Path, count: int) -> tuple[Attempt, ...]:
    paths = sorted((folder / "attempts").glob("*.json"))
    return tuple(read(path, Attempt) for path in paths if re.fullmatch(r"\d+", path.stem) and int(path.stem) <= count)


def _waits_for(folder: Path) -> tuple[str, ...]:
    return tuple(read(folder / WAITING, list)) if (folder / WAITING).exists() else ()


def _mark_waiting(folder: Path, cycle: tuple[str, ...]) -> None:
    if cycle:
        write(folder / WAITING, cycle)
    else:
        (folder / WAITING).unlink(missing_ok=True)
