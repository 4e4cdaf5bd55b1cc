"""Puts stubs in the place of what did not run: they say which example to add."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping, Sequence

from migrate_agent.tools.verify.evidence.counted_file import CountedFile, Missed, counted_file

YIELDS = (ast.Yield, ast.YieldFrom)
KEPT = "# no example reaches this: it was not verified"
"""The comment above what is kept though nothing ran it."""


def stubbed(files: Mapping[str, str], names: Iterable[str], ran: Mapping[str, Collection[str]], *, keep: bool = False) -> dict[str, str]:
    """The files among these whose text becomes another, with a stub in the place of each run of statements that did not run.

    `names` (`file:name`) are the definitions that may get stubs; `ran` as in `Reach`. With `keep` the statements stay, below a comment.
    """
    by_path: dict[str, set[str]] = {}
    for key in names:
        path, _, name = key.partition(":")
        by_path.setdefault(path, set()).add(name)
    texts = {}
    for path, inside in sorted(by_path.items()):
        if path not in files:
            continue
        file = counted_file(files[path])
        rows = [row for row in file.missed(inside, file.numbers_of(ran, path)) if keep or may_go(file, row)]
        if rows:
            texts[path] = _replaced(file, _outermost(rows), keep)
    return texts if keep else _formatted({path: without_idle_imports(files[path], text) for path, text in texts.items()})


def _formatted(texts: Mapping[str, str]) -> dict[str, str]:
    from migrate_agent.tools.rewrite.assemble.formatting import (
        format_python,  # here alone: the sandbox imports this room without the rewriter
    )

    return format_python(texts) if texts else {}


def _outermost(rows: Sequence[Missed]) -> list[Missed]:
    """The rows that do not lie in another one, as the body of a function does that was defined in a block that did not run."""
    return [row for row in rows if not any(other is not row and _inside(row.nodes[0], other) for other in rows)]


def without_idle_imports(before: str, after: str) -> str:
    """The text without the top-level imports of names that it no longer uses, and that it used before."""
    tree = ast.parse(after)
    idle = _names(ast.parse(before)) - _names(tree)
    lines = after.splitlines(keepends=True)
    for statement in reversed(tree.body):
        if not isinstance(statement, (ast.Import, ast.ImportFrom)):
            continue
        left = [alias for alias in statement.names if (alias.asname or alias.name.partition(".")[0]) not in idle]
        if len(left) < len(statement.names):
            statement.names = left
            lines[statement.lineno - 1 : statement.end_lineno] = [f"{ast.unparse(statement)}\n"] if left else []
    return "".join(lines)


def _names(tree: ast.Module) -> set[str]:
    """The names that a file uses, in `__all__` too."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return names | {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def _replaced(file: CountedFile, rows: Iterable[Missed], keep: bool) -> str:
    lines = file.text.splitlines(keepends=True)
    for row in sorted(rows, key=lambda row: row.lines, reverse=True):
        first, last = row.lines
        indent = lines[first - 1][: row.nodes[0].col_offset]
        if keep:
            lines[first - 1 : first - 1] = [f"{indent}{KEPT}\n"]
        else:
            # An `elif` is a statement of the `else` that its keyword stands for.
            above = [f"{indent}else:\n"] if lines[first - 1].lstrip().startswith("elif") else []
            lines[first - 1 : last] = [*above, f"{indent}{'    ' * len(above)}raise NotImplementedError({reason(file, row)!r})\n"]
    return "".join(lines)


def reason(file: CountedFile, row: Missed) -> str:
    """What a stub says."""
    whole = not row.condition and _is_whole(file, row)
    place = row.owner if whole else f"this part of {row.owner}"
    name = row.owner.rpartition(".")[2]
    example = f"that calls {name}" if whole else row.condition or "that reaches it"
    return f"{place} was not exercised: add an [[example]] {example}"


def _is_whole(file: CountedFile, row: Missed) -> bool:
    """Whether these statements are all of their function."""
    return all(place.node in row.nodes or _inside(place.node, row) for place in file.places if place.owner == row.owner)


def _inside(node: ast.AST, row: Missed) -> bool:
    first, last = row.lines
    return first <= getattr(node, "lineno", 0) <= last


def may_go(file: CountedFile, row: Missed) -> bool:
    """Whether the statements can be replaced line by line, without making another kind of function of theirs."""
    first, last = row.lines
    lines = file.text.splitlines()
    # ast counts columns in bytes; indentation has one byte a character.
    begins = not lines[first - 1][: row.nodes[0].col_offset].strip()
    ends = not lines[last - 1].encode()[row.nodes[-1].end_col_offset or 0 :].decode(errors="replace").partition("#")[0].strip()
    return begins and ends and not (_yields(row.nodes) and not _is_whole(file, row))


def _yields(nodes: Iterable[ast.AST]) -> bool:
    return any(isinstance(part, YIELDS) for node in nodes for part in ast.walk(node))
