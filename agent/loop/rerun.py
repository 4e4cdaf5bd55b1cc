"""How a failure that the verifier saved is run again: the command line, and the candidate that lies beside it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

from migrate_agent.tools.types import Evidence, Unit
from migrate_agent.tools.verify.report.replay import NAME

CANDIDATE, GIVEN = "candidate", "verify"
"""In the folder of a unit: the tree that was judged, and what the verifier left."""


def replay_command(root: Path | str, unit: Unit, saved: Path, options: Sequence[tuple[str, object]] = ()) -> str:
    """The command line that replays a saved failure."""
    words = ["migrate-agent", "verify", "--repo", str(root), unit.id]
    for option, value in options:
        words += [option, str(value)] if value else []
    return shlex.join([*words, "--replay", str(saved)])


def replay_note(root: str, unit: Unit, folder: Path, evidence: Evidence) -> str:
    """The line that tells how to run the evidence's numeric failure again; "" where none of it lies in the unit's folder."""
    saved = folder / GIVEN / f"{NAME}.json"
    if not saved.exists() or not (folder / CANDIDATE).is_dir():
        return ""
    shown = json.loads(saved.read_text(encoding="utf-8"))["detail"]
    failed = any(verdict.status == "fail" and verdict.detail == shown for verdict in evidence.verdicts)
    return f"run the failure again: {replay_command(root, unit, saved)}" if failed else ""


def candidate_beside(saved: Path) -> dict[str, str]:
    """The files of the tree that a run judged when it saved this failure; none where it was no run that did."""
    tree = saved.parent.parent / CANDIDATE
    files = (path for path in sorted(tree.rglob("*.py")) if path.is_file()) if saved.parent.name == GIVEN and tree.is_dir() else ()
    return {path.relative_to(tree).as_posix(): path.read_text(encoding="utf-8") for path in files}
