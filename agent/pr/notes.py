"""Notes on a line of the original as remarks on the line of the port that came of it, where the request changes that line."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from difflib import SequenceMatcher

from migrate_agent.agent.forge.base import LineNote
from migrate_agent.agent.pr.build import Built
from migrate_agent.agent.pr.commits import Bench
from migrate_agent.agent.pr.run import PLACED
from migrate_agent.agent.pr.sheet import Sheet
from migrate_agent.agent.runs.class_text import class_node


def remarks(bench: Bench, built: Built) -> tuple[LineNote, ...]:
    """The remarks of a piece, in the order of its notes."""
    return tuple(dict.fromkeys(note for sheet in built.sheets for note in _of_unit(bench, built, sheet)))


def _of_unit(bench: Bench, built: Built, sheet: Sheet) -> Iterable[LineNote]:
    source, target = bench.read(sheet.base, sheet.source), bench.read(built.commit, sheet.target)
    if source is None or target is None:
        return
    added = bench.added(built.parent, built.commit, sheet.target)
    first, last = _lines_of(source, sheet.name)
    for note in sheet.notes:
        match = PLACED.match(note)
        if match is None or match["path"] != sheet.source or not first <= int(match["line"]) <= last:
            continue
        line = followed(source, target, int(match["line"]))
        if line in added:
            yield LineNote(sheet.target, line, f"{match['text']} (`{match['path']}:{match['line']}`)")


def _lines_of(text: str, name: str) -> tuple[int, int]:
    node = class_node(ast.parse(text), name)
    return (node.lineno, node.end_lineno or node.lineno) if node else (1, 0)


def followed(before: str, after: str, line: int) -> int:
    """The line (1-based) of `after` that stands where this line of `before` does; 0 where it is gone."""
    old, new = ([text_line.strip() for text_line in text.splitlines()] for text in (before, after))
    for kind, low, high, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if low <= line - 1 < high:
            if kind == "delete":
                return 0
            # Within a rewritten block, the line most like it.
            target = (
                max(range(start, end), key=lambda at: SequenceMatcher(None, old[line - 1], new[at]).ratio())
                if kind == "replace"
                else start + line - 1 - low
            )
            return target + 1
    return 0
