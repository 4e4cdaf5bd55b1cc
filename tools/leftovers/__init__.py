"""What of torch is left in JAX source, by a static check: idioms that raise an error once they run, names of torch, and undefined names.

It runs nothing, and imports neither torch nor JAX. What it reports is certain: where the text does not say what a value is, it is silent.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from migrate_agent.tools.leftovers import idioms, names
from migrate_agent.tools.leftovers.program import File, Program

__all__ = ["Leftover", "find"]


class Leftover(NamedTuple):
    """One place: the file's path, the line, and what is wrong there."""

    file: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


def find(files: Mapping[str, str], imports: bool = True) -> Iterator[Leftover]:
    """The leftovers in Python files that run together (path → text), file by file. A text that does not parse is a leftover; `imports` says
    whether an import of torch is one."""
    trees: dict[str, ast.Module] = {}
    for path, text in files.items():
        try:
            trees[path] = ast.parse(text)
        except SyntaxError as error:
            yield Leftover(path, error.lineno or 0, f"does not parse: {error.msg}")
    program = Program([File(path, tree) for path, tree in trees.items()])
    for file in program.files:
        rows = [*names.find(file, files[file.path]), *(names.imported(file) if imports else ())]
        yield from (Leftover(file.path, line, what) for line, what in sorted(rows))
    yield from (Leftover(file.path, line, what) for file, line, what in idioms.find(program))
