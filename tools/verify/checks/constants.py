"""No literal is so large that it is data (weights, answers) instead of code."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify import limits
from migrate_agent.tools.verify.check import Check
from migrate_agent.tools.verify.results import Results
from migrate_agent.tools.verify.static import Source, judged


def judge(results: Results) -> Verdict:
    """Fail for the first literal beyond the limits."""
    return judged("constants", results.sources, find)


def find(source: Source) -> Iterator[tuple[int, str]]:
    """Long texts, huge whole numbers, and displays with many items, nested ones counted together. Docstrings are texts for people."""
    documentation = {id(node.value) for node in ast.walk(source.tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Constant) and id(node) not in documentation:
            value = node.value
            if isinstance(value, (str, bytes)) and len(value) > limits.MAX_LITERAL_CHARACTERS:
                yield node.lineno, f"a text of {len(value)} characters"
            elif isinstance(value, int) and abs(value) >= 1 << 256:
                yield node.lineno, f"a number of {value.bit_length()} bits"
        elif isinstance(node, (ast.List, ast.Tuple, ast.Set, ast.Dict)):
            items = sum(isinstance(inner, ast.Constant) for inner in ast.walk(node))
            if items > limits.MAX_LITERAL_ITEMS:
                yield node.lineno, f"a literal of {items} items"


CHECK = Check("static", "constants", judge)
