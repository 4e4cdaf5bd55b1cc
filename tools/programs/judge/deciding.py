"""Parts of conditions that decide nothing in a run: `if step % 3 == 0 or step == last`, where 3 divides `last`. Runs inside the sandbox.

A rewrite without such a part computes the same in that run, and something else in others.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

from migrate_agent.tools.scan.accelerators import needs_cuda

DECIDED = "__decided_by_migrate_agent__"
"""The name by which the parts of conditions tell what they are."""
MODULES = ("torch", "jax", "jnp", "np", "nnx")


class Parts:
    """The parts of `and` and `or` in the conditions of a script, and what they were while it ran."""

    def __init__(self, text: str) -> None:
        self.tree = ast.parse(text)
        tests = [node.test for node in ast.walk(self.tree) if isinstance(node, (ast.If, ast.While))]
        joined = [node for test in tests for node in ast.walk(test) if isinstance(node, ast.BoolOp)]
        self.parts = [(part, isinstance(node.op, ast.Or)) for node in joined for part in node.values]
        self.text = text
        self._seen: set[tuple[int, bool]] = set()

    def note(self, number: int, value: Any) -> Any:
        """The value of a part, which is noted."""
        self._seen.add((number, bool(value)))
        return value

    def watched(self) -> str:
        """The script with each part handed on by `note`; lines keep their numbers."""
        lines = [f"{line}\n".encode() for line in self.text.split("\n")]
        starts = [*accumulate(map(len, lines), initial=0)]
        marks: list[tuple[int, int, bytes]] = []
        for number, (part, _) in enumerate(self.parts):
            first = starts[part.lineno - 1] + part.col_offset
            last = starts[(part.end_lineno or part.lineno) - 1] + (part.end_col_offset or 0)
            # Of parts that begin or end at one position, the longer one is outside.
            marks += [(first, first - last, f"{DECIDED}({number}, ".encode()), (last, last - first, b")")]
        whole, position, pieces = self.text.encode(), 0, list[bytes]()
        for at, _, mark in sorted(marks, key=lambda row: (row[0], row[2] != b")", row[1])):
            pieces += [whole[position:at], mark]
            position = at
        return b"".join([*pieces, whole[position:]]).decode()

    def undecided(self) -> list[list[str | int]]:
        """Line, text and key of the parts that were looked at and never decided: of `or` never true, of `and` never false.

        What decides on an accelerator of torch's alone needs no counterpart.
        """
        seen = {number for number, _ in self._seen}
        idle = [
            part
            for number, (part, either) in enumerate(self.parts)
            if number in seen and (number, either) not in self._seen and not needs_cuda(self.tree, part, either)
        ]
        return sorted([part.lineno, ast.unparse(part), key(part)] for part in idle)


@contextmanager
def deciding(script: Path) -> Iterator[Parts]:
    """A context in which the parts of a script's conditions are noted while it runs. The file is as before afterwards."""
    text = script.read_text(encoding="utf-8-sig")
    parts = Parts(text)
    try:
        watched = parts.watched()
        ast.parse(watched)
    except SyntaxError:
        watched = text
    setattr(builtins, DECIDED, parts.note)
    script.write_text(watched)
    try:
        yield parts
    finally:
        script.write_text(text)


def conditions(text: str) -> list[str]:
    """The keys of a script's conditions, and of the parts of `and` and `or` in it."""
    nodes = list(ast.walk(ast.parse(text)))
    tests = [node.test for node in nodes if isinstance(node, (ast.If, ast.While, ast.IfExp))]
    parts = [part for node in nodes if isinstance(node, ast.BoolOp) for part in node.values]
    return sorted({key(node) for node in (*tests, *parts)})


def key(part: ast.expr) -> str:
    """What a condition says in either framework: its names, attributes, constants and operators, but not which functions it calls
    (`torch.isnan(loss)`, `os.path.isfile(path)`, `loss.item()`)."""
    nodes = list(ast.walk(part))
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)}
    words = [node.id for node in nodes if isinstance(node, ast.Name) and node.id not in MODULES]
    words += [node.attr for node in nodes if isinstance(node, ast.Attribute) and id(node) not in called]
    words += [repr(node.value) for node in nodes if isinstance(node, ast.Constant)]
    words += [type(node).__name__ for node in nodes if isinstance(node, (ast.operator, ast.cmpop, ast.unaryop, ast.boolop))]
    return " ".join(sorted(words))
