"""Numbers of rounds in the text of a script, and smaller ones in their place."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Bound:
    """A number of rounds and a smaller one for it, as literals, where the script's text has it once: `name` is the variable that one statement sets to
    it, else `head` is the head of the loop that has it, as `head_of` gives it.
    """

    whole: str
    smaller: str
    name: str = ""
    head: str = ""

    @property
    def number(self) -> int:
        """The number of rounds."""
        return int(self.whole, 0)

    @property
    def reverse(self) -> Bound:
        """What takes the change back."""
        return Bound(self.smaller, self.whole, self.name, self.smaller_head)

    @property
    def smaller_head(self) -> str:
        """The head of the loop with the smaller number; "" for a variable."""
        if not self.head:
            return ""
        loop = ast.parse(f"{self.head}: pass").body[0]
        for constant in _constants(loop, self.number):
            constant.value = int(self.smaller, 0)
        return head_of(loop)


def with_bounds(text: str, bounds: Iterable[Bound]) -> str | None:
    """The text with these numbers exchanged; `None` where one of them does not stand there just once."""
    for bound in bounds:
        literals = list(_literals(ast.parse(text), bound))
        if len(literals) != 1:
            return None
        text = _exchanged(text, literals[0], bound.smaller)
    return text


def head_of(loop: ast.AST) -> str:
    """The head of a loop as text: `for i in range(5)`; "" for anything else."""
    return f"for {ast.unparse(loop.target)} in {ast.unparse(loop.iter)}" if isinstance(loop, ast.For) else ""


def whole_number(node: ast.AST) -> int | None:
    """The value of a literal of a whole number."""
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _literals(tree: ast.Module, bound: Bound) -> Iterable[ast.Constant]:
    for node in ast.walk(tree):
        if bound.name and isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [bound.name]:
            if isinstance(node.value, ast.Constant) and whole_number(node.value) == bound.number:
                yield node.value
        elif bound.head and head_of(node) == bound.head:
            yield from _constants(node, bound.number)


def _constants(loop: ast.AST, number: int) -> list[ast.Constant]:
    assert isinstance(loop, ast.For)
    return [node for node in ast.walk(loop.iter) if isinstance(node, ast.Constant) and whole_number(node) == number]


def _exchanged(text: str, constant: ast.Constant, literal: str) -> str:
    lines = text.splitlines(keepends=True)
    # Columns of a tree count bytes.
    line = lines[constant.lineno - 1].encode()
    lines[constant.lineno - 1] = (line[: constant.col_offset] + literal.encode() + line[constant.end_col_offset :]).decode()
    return "".join(lines)
