"""Command lines that a repository writes down for its own scripts: `python train.py --blocks 18 18 18` in a README or a shell script. Read only."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

LARGEST = 200_000
"""Bytes of a file that is read."""
MOST_FILES = 40
PROGRAM = re.compile(r"(?:^|[\s`$(])python[\d.]*\s+(?:-\w\s+)*(?P<script>[\w./-]+\.py)(?P<rest>[^`|;&>\n]*)")
CONTINUED = re.compile(r"\\[ \t]*\n\s*")
SECRETIVE = re.compile(r"[$<{\[]")
"""What stands for a value that is not written down."""


def written_options(texts: Sequence[str], script: str, undecided: Collection[str], several: Collection[str]) -> dict[str, Any]:
    """Option → the value that the first command line with it gives to a script of this file name, of those that are `undecided`: they have no default.
    `texts` are those of `texts_with_commands`; `several` are options that take a list."""
    values: dict[str, Any] = {}
    for line in _lines(texts, script) if undecided else ():
        for option, words in _options(line):
            if option in undecided and option not in values and words and not any(SECRETIVE.search(word) for word in words):
                literals = [_literal(word) for word in words]
                values[option] = literals if option in several or len(literals) > 1 else literals[0]
    return values


def texts_with_commands(root: Path) -> list[str]:
    """The READMEs, other documents and shell scripts below a folder, those further up first."""
    paths = [path for suffix in ("sh", "md", "rst") for path in root.rglob(f"*.{suffix}") if ".git" not in path.relative_to(root).parts]
    texts: list[str] = []
    for path in sorted(paths, key=lambda path: (len(path.parts), path))[:MOST_FILES]:
        with suppress(OSError, ValueError):
            texts += [CONTINUED.sub(" ", path.read_text(encoding="utf-8-sig"))] if path.stat().st_size < LARGEST else []
    return texts


def _lines(texts: Sequence[str], script: str) -> Iterator[str]:
    """The options of each command line that runs the script."""
    for text in texts:
        for match in PROGRAM.finditer(text):
            if Path(match["script"]).name == script:
                yield match["rest"]


def _options(line: str) -> Iterator[tuple[str, list[str]]]:
    """The options of a command line by the name of their attribute, with the words behind each."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:  # quotes that do not end here
        return
    starts = [at for at, word in enumerate(words) if re.match(r"--?[A-Za-z]", word)]
    for at, end in pairwise((*starts, len(words))):
        name, equals, value = words[at].lstrip("-").partition("=")
        yield name.replace("-", "_"), [value] if equals else words[at + 1 : end]


def _literal(word: str) -> Any:
    try:
        return ast.literal_eval(word)
    except (ValueError, SyntaxError):
        return word
