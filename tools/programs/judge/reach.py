"""Which lines of a script a run reaches. Runs inside the sandbox."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from migrate_agent.tools.scan.accelerators import lines_on_cuda

SILENT = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Pass, ast.Raise)
"""Statements that compute nothing that could differ: definitions, errors, and what only binds names."""


@contextmanager
def reached(
    script: Path, look: Callable[[FrameType], None] = lambda frame: None, others: Mapping[str, set[int]] | None = None
) -> Iterator[set[int]]:
    """A context that notes the lines of a file that run, and looks at their frames before they do. `others` are further files by their paths, which
    get the lines of theirs that run.
    """
    lines: set[int] = set()
    name, outer, further = str(script), sys.gettrace(), others or {}

    def called(frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        # Frames without a trace function cost nothing further.
        if frame.f_code.co_filename == name:
            return line
        return beside if frame.f_code.co_filename in further else None

    def beside(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        further[frame.f_code.co_filename].add(frame.f_lineno)
        return beside

    def line(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        lines.add(frame.f_lineno)
        look(frame)
        return line

    sys.settrace(called)
    try:
        yield lines
    finally:
        sys.settrace(outer)


def unreached(text: str, lines: set[int]) -> list[int]:
    """First lines of the statements of a file that are not among the lines that ran."""
    statements = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt) and not isinstance(node, SILENT)]
    candidates = [node for node in statements if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]
    return sorted(node.lineno for node in candidates if not lines & set(range(node.lineno, (node.end_lineno or node.lineno) + 1)))


def unreached_on_cpu(text: str, lines: set[int]) -> list[int]:
    """The same of an original, without what an accelerator of torch's alone runs: that needs no counterpart."""
    return sorted(set(unreached(text, lines)) - lines_on_cuda(ast.parse(text)))


def ranges(lines: Sequence[int]) -> str:
    """Line numbers for people: `3, 5-7`."""
    texts: list[list[int]] = []
    for line in lines:
        if texts and line == texts[-1][-1] + 1:
            texts[-1].append(line)
        else:
            texts.append([line])
    return ", ".join(str(group[0]) if len(group) == 1 else f"{group[0]}-{group[-1]}" for group in texts)
