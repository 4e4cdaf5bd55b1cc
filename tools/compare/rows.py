"""Logs whose records are rows: JSONL, JSON (a list, or the `log_history` of a trainer's state), and CSV, those of W&B's page and client included."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from migrate_agent.tools.compare.kinds import BASES, axis_of
from migrate_agent.tools.compare.log import Log, LogError, Point, Request, log_of

Row = Mapping[str, Any]

_HISTORIES = ("log_history", "history", "metrics", "data", "rows")
"""Keys of a JSON object under which loggers keep the list of rows."""
_SPREAD = re.compile(r"__(MIN|MAX)$")
"""W&B's page exports each curve with the spread of its group beside it."""
_LATENCY = re.compile(
    r"(.*[._])?(latency|duration|response_time|request_time|elapsed|total_time)(_(?P<unit>ms|us|s|seconds))?", re.IGNORECASE
)
_MILLISECONDS = {"ms": 1.0, "us": 1e-3, "s": 1e3, "seconds": 1e3, None: 1.0}
_SERVER_ERROR = 500
"""HTTP statuses from here on are the server's fault (RFC 9110, section 15.6)."""


def read_rows(path: Path) -> Log:
    """The log in a file of rows. Raises `LogError` with file, line and reason."""
    rows = _csv(path) if path.suffix.lower() in (".csv", ".tsv") else _json(path)
    return log_of_rows(str(path), rows)


def log_of_rows(name: str, rows: Iterable[Row]) -> Log:
    """The log that these rows are: each a step with its metrics, or a served request."""
    points: list[Point] = []
    requests: list[Request] = []
    for row in rows:
        request = _request(row)
        if request is None:
            points += _points(row)
        else:
            requests.append(request)
    return log_of(name, points, requests)


def _json(path: Path) -> Iterator[Row]:
    text = _text(path)
    if path.suffix.lower() == ".json":
        yield from _document(path, text)
        return
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            # A run that was killed leaves its last line half written.
            if number == len(text.splitlines()) and not text.endswith("\n"):
                return
            raise LogError(f"{path}:{number}: is not JSON") from None
        if not isinstance(row, Mapping):
            raise LogError(f'{path}:{number}: is no row such as {{"step": 10, "loss": 2.31}}')
        yield row


def _document(path: Path, text: str) -> Iterator[Row]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise LogError(f"{path}: is not JSON: {error}") from None
    if isinstance(document, Mapping):
        document = next((document[key] for key in _HISTORIES if isinstance(document.get(key), list)), None)
    if not isinstance(document, list) or not all(isinstance(row, Mapping) for row in document):
        raise LogError(f"{path}: holds no list of rows, nor one under {', '.join(_HISTORIES)}")
    for row in document:
        # MLflow's metric history names the metric in the row.
        yield {row["key"]: row["value"], "step": row["step"]} if {"key", "value", "step"} <= set(row) else row


def _csv(path: Path) -> Iterator[Row]:
    lines = _text(path).splitlines()
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    for row in csv.DictReader(lines, delimiter=delimiter):
        yield {_column(key): value for key, value in row.items() if key and not _SPREAD.search(key)}


def _column(name: str) -> str:
    """`run name - loss` of W&B's page is `loss`."""
    return name.rpartition(" - ")[2].strip()


def _text(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise LogError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'is not UTF-8'}") from None
    if not text.strip():
        raise LogError(f"{path}: is empty")
    return text


def _points(row: Row) -> Iterator[Point]:
    numbers = {str(key): number for key, value in row.items() if (number := _number(value)) is not None}
    axes = {axis: number for key, number in numbers.items() if (axis := axis_of(key))}
    base = next((axis for axis in BASES if axis in axes), "")
    if base:
        yield from (Point(base, axes[base], axis, number) for axis, number in axes.items() if axis != base)
        yield from (Point(base, axes[base], key, number) for key, number in numbers.items() if not axis_of(key))


def _number(value: object) -> float | None:
    """The number that a cell is; None for what is none, or is not there."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value) if isinstance(value, (int, float, str)) else None
    except (ValueError, OverflowError):
        return None


def _request(row: Row) -> Request | None:
    """The request that a row without a step is, where it has a latency or an outcome."""
    if any(axis_of(str(key)) in ("step", "epoch") for key in row):
        return None
    outcome = _failed(row)
    for key, value in row.items():
        match, number = _LATENCY.fullmatch(str(key)), _number(value)
        if match and number is not None:
            return Request(number * _MILLISECONDS[(match["unit"] or "").lower() or None], outcome)
    return Request(float("nan"), outcome) if outcome is not None else None


def _failed(row: Row) -> bool | None:
    """Whether a request failed; None where the row does not say."""
    lower = {str(key).lower(): value for key, value in row.items()}
    for key in ("status", "status_code", "http_status", "code"):
        if (number := _number(lower.get(key))) is not None:
            return number >= _SERVER_ERROR
    for key in ("success", "ok"):
        if key in lower:
            return str(lower[key]).lower() not in ("true", "1", "yes")
    if "error" in lower:
        return str(lower["error"]).lower() not in ("", "none", "null", "false", "0")
    return None
