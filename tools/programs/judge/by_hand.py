"""Tells the judge of updates that a script writes out by hand: its text is marked where an optimizer would be constructed, and where one would step.

model = Net()                          model = Net(); __made_by_hand__(0, model)
…                                      …
for p in model.parameters():     →     for p in __updated_by_hand__(0, model.parameters(), lr):
    p.data.sub_(lr * p.grad)               p.data.sub_(lr * p.grad)

Runs inside the sandbox. What the script computes is as before, and lines keep their numbers.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

from migrate_agent.tools.programs.hand_updates import SIMPLE, HandUpdate, hand_updates

MADE, UPDATED = "__made_by_hand_migrate_agent__", "__updated_by_hand_migrate_agent__"


class HandOptimizer:
    """What stands for the optimizer of updates by hand: `param_groups` as torch's optimizers have them."""

    def __init__(self, module: Any) -> None:
        self.param_groups: list[dict[str, Any]] = [{"params": list(module.parameters()), "lr": 0.0}]


HandOptimizer.__name__ = "SGD"


@contextmanager
def updates_by_hand(script: Path, made: Callable[[Any], None], stepped: Callable[[Any], None]) -> Iterator[None]:
    """A context in which `made` and `stepped` get a `HandOptimizer` where a script would have an optimizer. The file is as before afterwards."""
    text = script.read_text(encoding="utf-8-sig")
    updates, optimizers = hand_updates(text), dict[int, HandOptimizer]()

    def make(number: int, module: Any) -> None:
        optimizers[number] = HandOptimizer(module)
        made(optimizers[number])

    def update(number: int, parameters: Iterable[Any], rate: float) -> Iterator[Any]:
        yield from parameters
        optimizers[number].param_groups[0]["lr"] = rate
        stepped(optimizers[number])

    setattr(builtins, MADE, make)
    setattr(builtins, UPDATED, update)
    script.write_text(_marked(text, updates) if updates else text)
    try:
        yield
    finally:
        script.write_text(text)


def _marked(text: str, updates: list[HandUpdate]) -> str:
    """The script with marks at its updates."""
    starts = [*accumulate((len(f"{line}\n".encode()) for line in text.split("\n")), initial=0)]
    statements = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)]
    marks: list[tuple[int, str]] = []
    for number, one in enumerate(updates):
        anchor = next(node for node in statements if node.lineno == one.construction)
        call = f"{MADE}({number}, {one.module})"
        if isinstance(anchor, SIMPLE):
            marks.append((starts[(anchor.end_lineno or 1) - 1] + (anchor.end_col_offset or 0), f"; {call}"))
        else:
            after = min((node for node in statements if node.lineno > (anchor.end_lineno or 1)), key=lambda node: node.lineno)
            marks.append((starts[after.lineno - 1] + after.col_offset, f"{call}; "))
        loop = min((node for node in statements if isinstance(node, ast.For) and node.lineno >= one.line), key=lambda node: node.lineno)
        header = loop.iter
        marks.append((starts[header.lineno - 1] + header.col_offset, f"{UPDATED}({number}, "))
        marks.append((starts[(header.end_lineno or 1) - 1] + (header.end_col_offset or 0), f", {one.rate})"))
    whole = text.encode()
    for at, mark in sorted(marks, reverse=True):
        whole = whole[:at] + mark.encode() + whole[at:]
    return whole.decode()
