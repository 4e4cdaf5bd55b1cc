"""What a reviewer is told of one unit: a sheet of plain data that lies on the branch beside the code.

The request's text is made from the sheet on the branch, never from local files, so that any machine makes the same text.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from migrate_agent.agent.config.json_files import plain
from migrate_agent.agent.config.secrets import redacted
from migrate_agent.agent.loop.report import verdict_row
from migrate_agent.agent.repository.git import EVIDENCE
from migrate_agent.tools.types import Verdict

VERSION = 1
FOLDER = EVIDENCE
NAME = "evidence.json"


@dataclass(frozen=True)
class Exercise:
    """How the unit was run: constructor and call as source text, and the tensors that the call was given (`x: float32 (3, 8)`)."""

    init: str
    call: str
    origin: str
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sheet:
    """One verified unit, written by `rules`, `llm` or `human`; `torchax` is no rewrite.

    `original` and `port` are SHA-256 of the class's text before and after; `files` of each file on the branch."""

    unit: str
    source: str
    name: str
    target: str
    base: str
    proposer: str
    original: str
    port: str
    needs: tuple[str, ...] = ()
    line: int = 1
    model: str = ""
    attempts: int = 1
    verdicts: tuple[Verdict, ...] = ()
    notes: tuple[str, ...] = ()
    exercises: tuple[Exercise, ...] = ()
    weights: tuple[tuple[str, ...], ...] = ()
    figures: dict[str, float] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    version: int = VERSION

    def says_the_same(self, other: Sheet) -> bool:
        """Whether both tell a reviewer the same: the same code, judged by the same checks with the same outcomes. Figures may differ."""

        def told(sheet: Sheet) -> tuple[object, ...]:
            outcomes = tuple((verdict.stage, verdict.check, verdict.status) for verdict in sheet.verdicts)
            return sheet.unit, sheet.target, sheet.original, sheet.port, sheet.proposer, sheet.notes, sheet.weights, outcomes

        return told(self) == told(other)

    @property
    def passed(self) -> int:
        """Checks that passed."""
        return sum(verdict.status == "pass" for verdict in self.verdicts)


def folder_of(unit: str) -> str:
    """Where a unit's evidence lies on the branch: `.migrate/evidence/model.py/GPT`."""
    return f"{FOLDER}/{unit.replace(':', '/')}"


def to_text(sheet: Sheet) -> str:
    """The sheet as JSON."""
    document = {**plain(sheet), "verdicts": [verdict_row(verdict) for verdict in sheet.verdicts]}
    return redacted(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def from_text(text: str) -> Sheet | None:
    """The sheet of a JSON text; `None` where it is none of ours, or of another version."""
    from pydantic import TypeAdapter, ValidationError

    try:
        document: Any = json.loads(text)
        if document.get("version") != VERSION:
            return None
        sheet: Sheet = TypeAdapter(Sheet).validate_python(document)
    except (ValueError, AttributeError, ValidationError):
        return None
    return sheet


def digest(text: str) -> str:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()
