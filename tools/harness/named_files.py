"""Files of the repository that an example names by their paths, such as `"config/net.cfg"`. Standard library only."""

from __future__ import annotations

import ast
import os
import shutil
import sys
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

LARGEST = 2**24
"""Bytes of a file that a job is given a copy of."""


def paths_in(text: str) -> Iterator[str]:
    """The words of a text of an example that may be paths below the repository: relative ones, with a suffix, that do not lead out of it."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200 and "\n" not in node.value:
            path = PurePosixPath(node.value)
            if path.suffix not in ("", ".py") and not path.is_absolute() and ".." not in path.parts:
                yield node.value


def texts_of(init: str, setup: str) -> str:
    """The texts of an example that construct its unit, as one that parses."""
    return f"{setup}\n_unit({init}\n)"


def bring(init: str, setup: str) -> None:
    """Copy the files that an example names, from where its job imports, into the folder that the job runs in: a relative path means those there."""
    lay(paths_in(texts_of(init, setup)), [Path(folder or ".") for folder in sys.path], Path.cwd())


def lay(paths: Iterator[str], sources: Collection[Path], target: Path) -> None:
    """Copy files of these paths, from the first folder that has one, below another folder; what lies there stays."""
    for path in dict.fromkeys(paths):
        source = next((folder / path for folder in sources if _is_copied(folder, path)), None)
        place = target / path
        if source is not None and not os.path.lexists(place):
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, place)


def _is_copied(folder: Path, path: str) -> bool:
    """Whether a file lies below a folder, by way of links too, and is not too large."""
    try:
        file = (folder / path).resolve()
        return file.is_file() and file.is_relative_to(folder.resolve()) and file.stat().st_size <= LARGEST
    except OSError:
        return False
