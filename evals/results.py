"""Results of a suite as JSON: what was measured, on which versions, how each case ended, and the rate with its denominator."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from migrate_agent.evals.suite import STATUSES, Options, Outcome, Suite

FOLDER = Path("evals") / "results"


def document(suite: Suite, options: Options, outcomes: Sequence[Outcome], seconds: float, versions: Mapping[str, str]) -> dict[str, Any]:
    """The result file's content. `options` tells whether it is the whole suite (`filter` empty, not `quick`) or a part."""
    counts = count(outcomes)
    return {
        "suite": suite.name,
        "title": suite.title,
        "unit": suite.unit,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "options": asdict(options),
        "versions": dict(versions),
        "machine": {"python": platform.python_version(), "system": platform.system(), "cpus": os.cpu_count()},
        "seconds": round(seconds),
        "counts": counts,
        "in_scope": in_scope(counts),
        "cases": [{"case": o.case, "status": o.status, "reason": o.reason, **o.details} for o in sorted(outcomes, key=lambda o: o.case)],
    }


def count(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """How many cases ended in each status."""
    found: dict[str, int] = dict.fromkeys(STATUSES, 0)
    for outcome in outcomes:
        found[outcome.status] += 1
    return found


def in_scope(counts: Mapping[str, int]) -> int:
    """The denominator: all that is not excluded."""
    return sum(counts.values()) - counts["excluded"]


def rate(counts: Mapping[str, int]) -> str:
    """`93 of 100 (93.0 %)`; rounded down, so that 100 % means all."""
    total = in_scope(counts)
    share = counts["right"] * 1000 // total / 10 if total else 0.0
    return f"{counts['right']} of {total} ({share:.1f} %)"


def write(result: Mapping[str, Any], folder: Path, complete: bool = True) -> Path:
    """Store the document as `<folder>/<suite>.json`; a part of a suite as `<suite>.part.json`, so that it never stands for the whole."""
    part = not complete or bool(result["options"]["filter"]) or result["options"]["quick"]
    path = folder / f"{result['suite']}{'.part' if part else ''}.json"
    folder.mkdir(parents=True, exist_ok=True)
    if not part:
        path.with_name(f"{result['suite']}.part.json").unlink(missing_ok=True)
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False, sort_keys=False) + "\n", encoding="utf-8")
    return path
