"""A table that the constructor is handed, with as many columns as a layer asks of what is looked up in it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome, set_init

ASKED = (
    re.compile(r"shapes cannot be multiplied \(\d+x(?P<got>\d+) and (?P<asked>\d+)x\d+\)"),
    re.compile(r"expected input\[.*\] to have (?P<asked>\d+) channels, but got (?P<got>\d+) channels"),
)
TABLE = re.compile(r"torch\.linspace\(0\.1, 1, \d+\)\.reshape\((\d+), (\d+)\)")


def wider_tables(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """A table whose columns are in the ratio of what a layer got to what it asks for: two rows that are joined are twice as wide as each."""
    message = next((match for pattern in ASKED if (match := pattern.search(outcome.error))), None)
    for name, value in attempt.init if message is not None else ():
        table = TABLE.search(value) if isinstance(value, str) else None
        if table is None or message is None:
            continue
        rows, columns, width, asks = int(table[1]), int(table[2]), int(message["got"]), int(message["asked"])
        for wide in dict.fromkeys((columns * asks // width, asks)) if columns * asks % width == 0 else (asks,):
            text = f"torch.linspace(0.1, 1, {rows * wide}).reshape({rows}, {wide})"
            yield set_init(attempt, name, TABLE.sub(text, str(value)))
