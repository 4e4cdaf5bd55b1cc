"""Where in a TOML text a key stands. `tomllib` does not say, and a parser of our own could disagree with it.

TOML is sequential: a key is there from the line on that ends its statement, and the lines before it are a valid text of their own.
So the line is found by parsing ever longer beginnings of the text: quadratic, but only ever done for an error message.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Any

_AT_LINE = re.compile(r"\s*\(at line (\d+), column \d+\)$|\s*\(at end of document\)$")

KeyPath = Sequence[str | int]
"""Keys from the outside in; integers count the tables of an array."""


def line_of(text: str, path: KeyPath) -> int:
    """The 1-based line where the statement (or table header) begins that brings `path` about.

    Where `path` is not there, the line of the longest part of it that is; 1 for none of it. `text` must be valid TOML.
    """
    for length in range(len(path), 0, -1):
        line = _first_line_with(text, path[:length])
        if line:
            return line
    return 1


def syntax_error(text: str, error: tomllib.TOMLDecodeError) -> tuple[int, str]:
    """Line and reason of what `tomllib` refused. An error at the end of the text is put on the last line that says anything."""
    message = str(error)
    match = _AT_LINE.search(message)
    if match is None or match[1] is None:
        line = len(text.rstrip().splitlines()) or 1
    else:
        line = int(match[1])
    return line, _AT_LINE.sub("", message)


def _first_line_with(text: str, path: KeyPath) -> int:
    lines = text.splitlines(keepends=True)
    start = 0  # lines before this one are whole statements
    for end in range(1, len(lines) + 1):
        try:
            document = tomllib.loads("".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue
        if _contains(document, path):
            return start + 1
        start = end
    return 0


def _contains(value: Any, path: KeyPath) -> bool:
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return False
    return True
