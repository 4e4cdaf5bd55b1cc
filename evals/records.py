"""Results of a suite as JSON: commit and versions, the outcome of each case, and the rate with its denominator.

A suite with `kept` has one file a group, `<folder>/<suite>/<group>.json`, which is committed. After each run `<folder>/<suite>.json` is made of
them all; it is not committed.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from migrate_agent.evals.suite import COUNTED, STATUSES, Group, Options, Outcome, Suite

FOLDER = Path("evals") / "results"
LATEST = ".latest.json"
"""How the name of a group's later results ends, where its first ones are kept. It sorts behind `.json`: of both, the later ones are read."""
ALL = "all"
"""What stands for a folder of clones where groups are only listed: those that need one are counted too."""
FIELDS = ("case", "status", "reason")


def document(suite: Suite, options: Options, outcomes: Sequence[Outcome], seconds: float, versions: Mapping[str, str]) -> dict[str, Any]:
    """The result file's content. `options` tells whether it is the whole suite (`filter` empty, not `quick`) or a part."""
    counts = count(outcomes)
    return {
        "suite": suite.name,
        "title": suite.title,
        "unit": suite.unit,
        "date": today(),
        "commit": commit(),
        "options": asdict(options),
        "versions": dict(versions),
        "machine": {"python": platform.python_version(), "system": platform.system(), "cpus": os.cpu_count()},
        "seconds": round(seconds),
        "counts": counts,
        "in_scope": in_scope(counts),
        "summary": dict(suite.summary(outcomes)),
        "cases": _rows(outcome for outcome in outcomes if not (suite.brief and outcome.status == "right")),
    }


def _rows(outcomes: Iterable[Outcome]) -> list[dict[str, Any]]:
    return [{"case": o.case, "status": o.status, "reason": o.reason, **o.details} for o in sorted(outcomes, key=lambda o: o.case)]


def outcome(row: Mapping[str, Any]) -> Outcome:
    """The outcome that a row of a result file holds."""
    return Outcome(row["case"], row["status"], row["reason"], {key: value for key, value in row.items() if key not in FIELDS})


def today() -> str:
    """The date, in UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%d")


@cache
def commit() -> str:
    """The commit of ours that is measured, with a plus where the working tree has other changes; nothing outside a checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--abbrev=10", "--dirty=+"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def count(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """Status → number of cases."""
    counts: dict[str, int] = dict.fromkeys(STATUSES, 0)
    for outcome in outcomes:
        counts[outcome.status] += 1
    return counts


def in_scope(counts: Mapping[str, int]) -> int:
    """The denominator: all cases that are not excluded."""
    return sum(counts[status] for status in COUNTED)


def rate(counts: Mapping[str, int]) -> str:
    """`93 of 100 (93.0 %)`; rounded down, so that 100 % means all."""
    total = in_scope(counts)
    share = counts["right"] * 1000 // total / 10 if total else 0.0
    return f"{counts['right']} of {total} ({share:.1f} %)"


def write(result: Mapping[str, Any], folder: Path, complete: bool = True) -> Path:
    """Store the document as `<folder>/<suite>.json`; a part of a suite as `<suite>.part.json`, so that it never stands for the whole."""
    part = not complete or bool(result["options"]["filter"]) or result["options"]["quick"]
    path = folder / f"{result['suite']}{'.part' if part else ''}.json"
    if not part:
        path.with_name(f"{result['suite']}.part.json").unlink(missing_ok=True)
    return _store(result, path)


def _store(content: Mapping[str, Any], path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False, sort_keys=False) + "\n", encoding="utf-8")
    return path


def store_group(suite: Suite, group: Group, outcomes: Sequence[Outcome], seconds: float, folder: Path) -> Path:
    """Store the outcomes of one group, in place of earlier ones; those of a first look stay, and the later ones stand beside them."""
    content = {
        "group": list(group),
        "date": today(),
        "commit": commit(),
        "seconds": round(seconds),
        "versions": dict(suite.versions(outcomes)),
        "cases": _rows(outcomes),
    }
    path = folder / suite.name / f"{group[0]}.json"
    return _store(content, path.with_suffix(LATEST) if suite.first_look and path.exists() else path)


def stored_groups(suite: Suite, folder: Path) -> dict[Group, dict[str, Any]]:
    """Group → its stored results."""
    files = sorted((folder / suite.name).rglob("*.json"))
    stored = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    return {tuple(content["group"]): content for content in stored}


def _samples(outcomes: Iterable[Outcome]) -> int | None:
    """The limit on samples under which all of these cases were measured; `None` where there was none, or not one."""
    limits = {outcome.details["limit"] for outcome in outcomes if "limit" in outcome.details}
    return limits.pop() if len(limits) == 1 else None


def assembled(suite: Suite, folder: Path) -> dict[str, Any]:
    """The whole suite's result, of the groups that are stored; those that were never measured are named in it (`missing`)."""
    stored, groups = stored_groups(suite, folder), suite.groups(Options(sources=ALL))
    chosen = [stored[group] for group in groups if group in stored]
    outcomes = [outcome(row) for content in chosen for row in content["cases"]]
    versions: dict[str, str] = {}
    for content in chosen:
        versions |= content["versions"]
    result = document(suite, Options(samples=_samples(outcomes)), outcomes, sum(content["seconds"] for content in chosen), versions)
    result["missing"] = [group[0] for group in groups if group not in stored]
    result["date"] = max((content["date"] for content in chosen), default=result["date"])
    result["commit"] = ", ".join(sorted({part for content in chosen for part in content["commit"].split(", ")}))
    return result
