"""Source whose blocks are indented by tabs here and by spaces there, which Python reads (a tab goes to the next multiple of 8) and libcst does not."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Mapping

from migrate_agent.tools.types import Observed, Span

TAB = 8
BLANK = frozenset({tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER})


def in_spaces(text: str) -> tuple[str, dict[int, int]]:
    """Text with spaces alone where its indentation has tabs and spaces, and line → by how many columns its code has moved.

    Lines within strings and brackets stay as they are. Text that is indented in one way is given back unchanged.
    """
    lines = text.split("\n")
    widths = {row: len(lines[row - 1]) - len(lines[row - 1].lstrip(" \t")) for row in _first_rows(text)}
    indents = "".join(lines[row - 1][:width] for row, width in widths.items())
    if "\t" not in indents or " " not in indents:
        return text, {}
    moved: dict[int, int] = {}
    for row, width in widths.items():
        line = lines[row - 1]
        spaces = line[:width].expandtabs(TAB)
        lines[row - 1] = spaces + line[width:]
        moved[row] = len(spaces) - width
    return "\n".join(lines), {row: by for row, by in moved.items() if by}


def moved_by(observed: Mapping[Span, Observed], moved: Mapping[int, int]) -> Mapping[Span, Observed]:
    """What was observed of expressions, at the places that they have after `in_spaces`."""
    if not moved:
        return observed
    return {
        span._replace(column=span.column + moved.get(span.line, 0), end_column=span.end_column + moved.get(span.end_line, 0)): fact
        for span, fact in observed.items()
    }


def _first_rows(text: str) -> list[int]:
    """The rows on which a statement or a comment of its own line begins."""
    rows: list[int] = []
    fresh = True
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in BLANK:
                fresh = fresh or token.type == tokenize.NEWLINE
            else:
                rows += [token.start[0]] if fresh else []
                fresh = fresh and token.type == tokenize.COMMENT
    except (tokenize.TokenError, SyntaxError):
        return []
    return rows
