"""Ranks and sizes of inputs that the documentation of a class tells: `x: (batch, length, width)`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

from migrate_agent.tools.record.guessing.values import Tensor

SHAPE = r"[^\n]{0,60}?[\[\(]\s*((?:[\w*/+\-. ]+,\s*)+[\w*/+\-. ]*)[\]\)]"


def documented_rank(cls: type, name: str) -> int:
    """The rank of an input by the documentation: `x: (batch, length, width)`; 0 where it tells none."""
    match = _documented(cls, name) or re.search(rf"[Ii]nput\b{SHAPE}", _documentation(cls))
    if match is None or re.search(r"\b(optional|default|int|float|bool|str)\b", match[1]):
        return 0
    rank = len([part for part in match[1].split(",") if part.strip()])
    return rank if "*" not in match[1] and 1 < rank < 6 else 0


def documented_tensor(cls: type, name: str, batch: int, values: Mapping[str, Any]) -> Tensor | None:
    """An argument whose sizes the documentation tells all: `l: a tensor of shape (B, 2)`, `h: (batch, hidden_size)` beside a constructor's `hidden_size`.
    Coordinates, and what lies in a range, are positive."""
    match = _documented(cls, name)
    parts = [part.strip() for part in match[1].split(",") if part.strip()] if match else []
    named = [batch if BATCH.fullmatch(part) else int(part) if part.isdigit() else values.get(part) for part in parts]
    sizes = tuple(size for size in named if type(size) is int and size > 0)
    if match is None or not 1 < len(sizes) == len(named) or not BATCH.fullmatch(parts[0]):
        return None
    after = match.string[match.start() : match.end() + 100]
    return Tensor(sizes, "positive" if BOUNDED.search(after) else "normal")


BATCH = re.compile(r"b|n|bs|batch(_?size)?", re.I)
BOUNDED = re.compile(r"\bcoordinates?\b|\brange \[|\bnormali[sz]ed\b")


def _documentation(cls: type) -> str:
    return f"{inspect.getdoc(getattr(cls, 'forward', None)) or ''}\n{cls.__doc__ or ''}"


def _documented(cls: type, name: str) -> re.Match[str] | None:
    return re.search(rf"\b{re.escape(name)}\b{SHAPE}", _documentation(cls))
