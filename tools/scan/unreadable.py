"""Files that Python 3 does not read: which of them are Python 2, and which of them another file imports."""

from __future__ import annotations

import re

from migrate_agent.tools.types import Inventory, SourceFile

PYTHON_2 = "it is Python 2"
MESSAGES = re.compile(
    r"Missing parentheses in call to '(print|exec)'|multiple exception types must be parenthesized|leading zeros in decimal integer"
    r"|inconsistent use of tabs and spaces|(Function|Lambda expression) parameters cannot be parenthesized"
)
"""What Python 3 says of code that Python 2 reads."""
FORMS = re.compile(
    r"<>|`[^`]+`|^\s*raise\s+[\w.]+\s*,|\b\d+[lL]\b|\b0[0-7]+\b|\b[uU][rR]['\"]|^\s*print\s|^\s*exec\s|^\s*except\s+[\w.]+\s*,"
)
"""Forms of Python 2 alone, in the line that an error names."""


def because(error: SyntaxError) -> str:
    """Why a file cannot be parsed, on one line; of one for Python 2 it says so."""
    old = MESSAGES.match(error.msg) or (error.msg.startswith("invalid ") and FORMS.search(error.text or ""))
    return f"line {error.lineno or 1}: {f'{PYTHON_2}: ' if old else ''}{error.msg}"


def unreadable_below(inventory: Inventory, path: str) -> tuple[SourceFile, ...]:
    """The files that cannot be parsed among those that a file imports, directly or by way of others."""
    files = {file.path: file for file in inventory.files}
    waiting, reached = [path], dict.fromkeys([path])
    while waiting:
        fresh = [other for other in files[waiting.pop()].imports if other in files and other not in reached]
        reached |= dict.fromkeys(fresh)
        waiting += fresh
    return tuple(files[other] for other in reached if files[other].error)
