"""Other files of a program's own code, such as a trainer's or a data set's: which of their lines no run reaches."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from migrate_agent.tools.programs.judge.reach import unreached

Unrun = Mapping[str, Mapping[str, Sequence[int]]]
"""Path of a file → name of a function or class at its top → the lines of it that a run does not reach."""


@dataclass(frozen=True)
class Beside:
    """A file of the program's own code: its path, that of its mirror, and its functions and classes that nothing traces."""

    source: str
    target: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Missed:
    """The lines of a file and of its mirror that no run reaches."""

    file: Beside
    original: tuple[int, ...]
    rewrite: tuple[int, ...]


def unrun_of(
    work: Path, files: Mapping[str, Sequence[str]], lines: Mapping[str, set[int]], missed: Callable[[str, set[int]], list[int]] = unreached
) -> dict[str, dict[str, list[int]]]:
    """The lines of the named functions and classes of files below `work` that are not among the `lines` that ran: those that `missed` gives."""
    return {
        path: dict(_unrun((work / path).read_text(encoding="utf-8-sig"), names, missed, lines[path]))
        for path, names in files.items()
        if (work / path).is_file()
    }


def _unrun(text: str, names: Sequence[str], missed: Callable[[str, set[int]], list[int]], ran: set[int]) -> Iterator[tuple[str, list[int]]]:
    unrun = missed(text, ran)
    for node in ast.parse(text).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in names:
            yield node.name, [line for line in unrun if node.lineno < line <= (node.end_lineno or node.lineno)]


def missed_beside(files: Sequence[Beside], originals: Sequence[Unrun], candidates: Sequence[Unrun]) -> tuple[Missed, ...]:
    """The files of which some lines are reached in none of the runs of either side; what one side does not have is not asked for."""
    rows = []
    for file in files:
        theirs = [run.get(file.source, {}) for run in originals]
        ours = [run.get(file.target, {}) for run in candidates]
        names = sorted(set.intersection(*(set(run) for run in (*theirs, *ours))))
        row = Missed(file, _in_none(theirs, names), _in_none(ours, names))
        rows += [row] if row.original or row.rewrite else []
    return tuple(rows)


def _in_none(runs: Sequence[Mapping[str, Sequence[int]]], names: Sequence[str]) -> tuple[int, ...]:
    return tuple(sorted(line for name in names for line in set.intersection(*(set(run[name]) for run in runs))))
