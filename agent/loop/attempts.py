"""The proposals made for a unit, as files in its folder: `attempts/0001.json`, … Written by number, so that doing a node again changes nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from migrate_agent.agent.config.json_files import read, write
from migrate_agent.agent.model.interface import Attempt, Author
from migrate_agent.agent.model.splice import fingerprint
from migrate_agent.tools.types import Evidence


def note(folder: Path, attempt: Attempt) -> None:
    """Keep an attempt under its number."""
    write(folder / "attempts" / f"{attempt.number:04d}.json", attempt)


def judged(folder: Path, number: int, evidence: Evidence) -> None:
    """Add the evidence to an attempt."""
    note(folder, replace(read(folder / "attempts" / f"{number:04d}.json", Attempt), evidence=evidence))


def history(folder: Path, last: int) -> tuple[Attempt, ...]:
    """The attempts up to this number, oldest first."""
    return tuple(
        read(path, Attempt)
        for path in sorted((folder / "attempts").glob("*.json"))
        if re.fullmatch(r"\d+", path.stem) and int(path.stem) <= last
    )


def count(attempts: tuple[Attempt, ...], by: Author) -> int:
    """How many of them this author made."""
    return sum(attempt.by == by for attempt in attempts)


def same_as(attempts: tuple[Attempt, ...], texts: Mapping[str, str]) -> Attempt | None:
    """The earlier attempt with the same code, comments and layout aside."""
    wanted = fingerprint(texts)
    return next((attempt for attempt in attempts if attempt.texts and fingerprint(attempt.texts) == wanted), None)


def best(attempts: tuple[Attempt, ...]) -> Evidence | None:
    """The evidence that went furthest: with most checks passed, the latest of equals."""
    found = [attempt.evidence for attempt in attempts if attempt.evidence is not None]
    return max(reversed(found), key=lambda evidence: sum(verdict.status == "pass" for verdict in evidence.verdicts), default=None)
