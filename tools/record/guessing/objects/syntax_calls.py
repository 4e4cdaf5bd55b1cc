"""Values with which properties are set, and with which objects are gone through and looked into. Used inside the sandbox."""

from __future__ import annotations

import ast
from typing import Any

from migrate_agent.tools.record.guessing.feedback import value_of
from migrate_agent.tools.record.guessing.objects.own_items import names_held
from migrate_agent.tools.record.guessing.values import text

LONGEST = 500
"""Letters of a literal."""
KEYS = ("0", "1", "-1", "slice(0, 2)", "(0, 1)")
"""What may stand between brackets."""
MOST_WORDS = 3


def other_values_of(value: Any) -> list[str]:
    """Texts of what may be put in the place of a value: of the same kind, another one first. None stands for what is not known."""
    if isinstance(value, bool):
        return [str(not value), str(value)]
    if isinstance(value, int):
        return [str(value + 1), str(value)]
    if isinstance(value, float):
        return [repr(value / 2), repr(value)]
    try:
        like = value_of(value)
    except Exception:  # what no text makes
        return []
    if value is not None and like is not None:
        return [text(like)]
    return [repr(value)] if value is not None and _is_literal(value) else []


def keys_of(instance: Any, needed: int) -> list[str]:
    """Texts of argument lists for a method that syntax calls: numbers, a part, and the words by which the instance holds something; with what is put there
    where it takes that too."""
    words = [repr(word) for row in names_held(instance) for word in row[:MOST_WORDS]]
    keys = [""] if not needed else [*KEYS, *words]
    return keys if needed < 2 else [f"{key}, {value}" for key in keys for value in ("1", "0.5")]


def _is_literal(value: Any) -> bool:
    written = repr(value)
    try:
        return len(written) <= LONGEST and bool(ast.literal_eval(written) == value)
    except (ValueError, SyntaxError):
        return False
