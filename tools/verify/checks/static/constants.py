"""No literal is so large that it must be data (weights, answers) and not code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.evidence.candidate import Results
from migrate_agent.tools.verify.evidence.parsed_source import Source, judged, once, parse


class Large(NamedTuple):
    """A literal beyond the limits: its line, its description, and its value as text."""

    line: int
    words: str
    value: str


def judge(results: Results) -> Verdict:
    """Fail for the first literal beyond the limits that the original file does not hold as well (texts that it hands to its decorators)."""
    return judged("constants", results.sources, lambda source: find(source, _counterpart(results, source)))


def find(source: Source, original: Source | None = None) -> Iterator[tuple[int, str]]:
    """(line, message) of long strings, huge ints and displays with many items (nested ones counted together) that `original` lacks."""
    literals = _large(source)
    original_values = {large.value for large in _large(original)} if literals and original else set()
    yield from ((large.line, large.words) for large in literals if large.value not in original_values)


@once
def _large(source: Source) -> Iterator[Large]:
    """All literals beyond the limits, docstrings left out."""
    documentation = {id(node.value) for node in ast.walk(source.tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Constant) and id(node) not in documentation:
            value = node.value
            if isinstance(value, (str, bytes)) and len(value) > tolerances.MAX_LITERAL_CHARACTERS:
                yield Large(node.lineno, f"a text of {len(value)} characters", repr(value))
            elif isinstance(value, int) and abs(value) >= 1 << 256:
                yield Large(node.lineno, f"a number of {value.bit_length()} bits", hex(value))
        elif isinstance(node, (ast.List, ast.Tuple, ast.Set, ast.Dict)):
            # All levels together: a table of a hundred short rows is as much data as one long row.
            items = sum(isinstance(inner, ast.Constant) for inner in ast.walk(node))
            if items > tolerances.MAX_LITERAL_ITEMS:
                yield Large(node.lineno, f"a literal of {items} items", ast.dump(node))


def _counterpart(results: Results, source: Source) -> Source | None:
    """The file of the original that this one mirrors."""
    # A long text of the original (a docstring in a decorator) is no data of the candidate.
    file = next((file for file in results.inventory.files if file.target == source.path), None)
    return parse(results.original_root, file.path) if file else None


CHECK = Check("static", "constants", judge)
