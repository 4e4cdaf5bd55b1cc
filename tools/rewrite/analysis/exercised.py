"""What the examples used of a repository. What no example used may be a stub that raises when it is used."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from migrate_agent.tools.rewrite.analysis.facts import span_of
from migrate_agent.tools.rewrite.analysis.repo import FileModel, Repo, dotted_name
from migrate_agent.tools.types import Observations

TopLevelName = tuple[str, str]
"""(file path, top-level name)."""


@dataclass(frozen=True)
class Exercised:
    """What ran while the examples did.

    `read`: top-level names that running code read. `called`: the last part of the name of each
    class and function that was called. `compared`: top-level names that the source compares by
    `is`, run or not, since a stub in their place would change the answer. `instances`: dotted names
    of the classes of which an instance or a bound method was seen.
    """

    read: frozenset[TopLevelName] = frozenset()
    called: frozenset[str] = frozenset()
    compared: frozenset[TopLevelName] = frozenset()
    instances: frozenset[str] = frozenset()


def exercised(repo: Repo, observations: Observations) -> Exercised | None:
    """What the examples used; `None` where none was observed."""
    # Nothing observed is not the same as nothing used: without a recording nobody knows.
    if not any(observations.values()):
        return None
    read: set[TopLevelName] = set()
    called: set[str] = set()
    compared: set[TopLevelName] = set()
    for path, file in repo.files.items():
        observed = observations.get(path, {})
        for node in ast.walk(file.tree):
            if isinstance(node, (ast.Name, ast.Attribute)) and observed and span_of(node, file.lines) in observed:
                read |= set(_names_read(repo, file, node))
            elif isinstance(node, ast.Call) and observed and (fact := observed.get(span_of(node.func, file.lines))):
                called |= {kind.rpartition(".")[2].rpartition(":")[2] for kind in fact.kinds}
            elif isinstance(node, ast.Compare) and any(isinstance(one, (ast.Is, ast.IsNot)) for one in node.ops):
                for side in (node.left, *node.comparators):
                    compared |= set(_names_read(repo, file, side))
    seen_kinds = {kind for spans in observations.values() for fact in spans.values() for kind in fact.kinds}
    return Exercised(frozenset(read), frozenset(called), frozenset(compared), frozenset(_instances(seen_kinds)))


def _instances(kinds: Iterable[str]) -> Iterator[str]:
    """Dotted class names of the instances and methods among the kinds of `tools.record.kinds`."""
    for kind in kinds:
        head, _, dotted = kind.rpartition(":")
        if head.endswith(("module", "object")):
            yield dotted
        elif head.endswith("method"):
            yield dotted.rpartition(".")[0]


def _names_read(repo: Repo, file: FileModel, node: ast.expr) -> Iterator[TopLevelName]:
    """The top-level name that an expression reads, with the file that defines it."""
    if isinstance(node, ast.Name) and node.id in file.top_names:
        yield file.file.path, node.id
    elif dotted := dotted_name(node, file) if isinstance(node, (ast.Name, ast.Attribute)) else "":
        definition = repo.resolve(dotted)
        if definition and definition[1]:
            yield definition[0].file.path, definition[1].partition(".")[0]
