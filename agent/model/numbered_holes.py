"""Holes as numbered places in the draft's text: where a model may write, and nowhere else.

A hole is known by its place in the original. In the draft it is looked for in the method of the same name, as the statement that is most like
the original's; where none is alike, the whole method (or class) is the place. A wrong guess costs an attempt: the verifier decides.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from migrate_agent.tools.types import Draft, Hole, Inventory

ALIKE = 0.5
"""Least likeness of two statements' texts (`difflib` ratio) to be taken for the same one before and after rewriting."""
RENAMED = {"forward": "__call__"}
Compound = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match)
Scope = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Lines(NamedTuple):
    """A range of 1-based lines, both ends included."""

    first: int
    last: int

    def holds(self, other: Lines) -> bool:
        """Whether the other range lies within this one."""
        return self.first <= other.first and other.last <= self.last


@dataclass(frozen=True)
class Slot:
    """A numbered place: lines of the text of `owner` (`file:name` of a top-level statement), and why it is open."""

    number: int
    owner: str
    lines: Lines
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Slots:
    """The texts of the draft in which there are places to fill (`file:name` → text), and the places."""

    texts: Mapping[str, str]
    slots: tuple[Slot, ...]

    def marked(self, owner: str) -> str:
        """The text with each place between two comments that carry its number."""
        lines = self.texts[owner].splitlines()
        for slot in sorted((slot for slot in self.slots if slot.owner == owner), key=lambda slot: -slot.lines.first):
            first, last = slot.lines
            indent = " " * (len(lines[first - 1]) - len(lines[first - 1].lstrip()))
            lines[last:last] = [f"{indent}# <<< end of hole {slot.number}"]
            lines[first - 1 : first - 1] = [f"{indent}# >>> hole {slot.number}: {'; '.join(slot.reasons)}"]
        return "\n".join(lines) + "\n"


def number_holes(draft: Draft, inventory: Inventory, sources: Mapping[str, str], unit: str) -> Slots:
    """The draft's holes as places. `sources` are the texts of the original files by path. The unit's own text is always among the texts."""
    reasons: dict[str, dict[Lines, list[str]]] = {}
    texts: dict[str, str] = {}
    path, _, name = unit.rpartition(":")
    for owner, lines, reason in [
        *((f"{path}:{name.partition('.')[0]}", None, ""),),
        *(slot for hole in draft.holes if (slot := _locate(hole, draft, inventory, sources)) is not None),
    ]:
        text = texts.setdefault(owner, statement_text(draft, inventory, owner))
        if lines is not None and text:
            reasons.setdefault(owner, {}).setdefault(lines, []).append(reason)
    return Slots({owner: text for owner, text in texts.items() if text}, tuple(_number_lines(reasons)))


def statement_text(draft: Draft, inventory: Inventory, owner: str) -> str:
    """The text of a top-level statement of the draft by `file:name` of the original, with its decorators; "" where it is not there."""
    path, _, name = owner.rpartition(":")
    target = next((file.target for file in inventory.files if file.path == path), "")
    text = draft.files.get(target, "")
    node = next((node for node in ast.parse(text).body if name in _defined(node)), None)
    return "" if node is None else _text(text, node)


def number_mentions(text: str, owner: str, attribute: str) -> Slots:
    """The statements that mention `self.<attribute>` as places: the submodule's construction and its calls."""
    reasons: dict[Lines, list[str]] = {}
    for node in _statements(ast.parse(text)):
        header = [node] if not isinstance(node, Compound) else list(_header(node))
        names = {inner.attr for part in header for inner in ast.walk(part) if isinstance(inner, ast.Attribute) and _is_self(inner)}
        if attribute in names:
            reasons[_lines(node)] = [f"uses self.{attribute}"]
    return Slots({owner: text}, tuple(_number_lines({owner: reasons})))


def _locate(hole: Hole, draft: Draft, inventory: Inventory, sources: Mapping[str, str]) -> tuple[str, Lines | None, str] | None:
    """The owner, the lines in its text (all of it where nothing nearer is found) and the reason of a hole."""
    source = sources.get(hole.source, "")
    tree = ast.parse(source)
    top = next((node for node in tree.body if _lines(node).first <= hole.span.line <= _lines(node).last), None)
    names = _defined(top) if top is not None else []
    if top is None or not names:
        return None
    owner = f"{hole.source}:{names[0]}"
    text = statement_text(draft, inventory, owner)
    if not text:
        return None
    scopes, statement = _path(top, hole.span.line)
    inside = _descend(ast.parse(text).body[0], scopes)
    if inside is None or statement is None:
        return owner, _lines(ast.parse(text).body[0]), hole.reason
    original = ast.get_source_segment(source, statement) or ""
    return owner, _most_similar(text, inside, original, _rank(source, statement, scopes, top)), hole.reason


def _path(top: ast.stmt, line: int) -> tuple[list[str], ast.stmt | None]:
    """Names of the classes and functions around a line, without the topmost, and the innermost statement there (a compound by its header)."""
    scopes: list[str] = []
    node: ast.stmt = top
    while True:
        inner = next((child for child in _children(node) if _lines(child).first <= line <= _lines(child).last), None)
        if inner is None:
            return scopes, None if node is top or isinstance(node, Scope) else node
        if isinstance(inner, Scope):
            scopes.append(inner.name)
        node = inner


def _descend(node: ast.stmt, scopes: Sequence[str]) -> ast.stmt | None:
    """The same class or function in the draft."""
    for name in scopes:
        names = (name, RENAMED.get(name, name))
        node_or_none = next(
            (child for child in ast.walk(node) if isinstance(child, Scope) and child.name in names and child is not node), None
        )
        if node_or_none is None:
            return None
        node = node_or_none
    return node


def _rank(source: str, statement: ast.stmt, scopes: Sequence[str], top: ast.stmt) -> int:
    """How many statements of the same text come before this one in its method."""
    method = _descend(top, scopes) or top
    text = ast.get_source_segment(source, statement)
    return sum(ast.get_source_segment(source, other) == text for other in _statements(method) if other.lineno < statement.lineno)


def _most_similar(text: str, inside: ast.stmt, original: str, rank: int) -> Lines:
    """The lines of the statement most like `original` (the `rank`-th among equals), those of the whole scope where none is alike."""
    scored = [
        (difflib.SequenceMatcher(None, original, ast.get_source_segment(text, node) or "", autojunk=False).ratio(), node)
        for node in _statements(inside)
    ]
    best = max((score for score, _ in scored), default=0.0)
    if best < ALIKE:
        return _lines(inside)
    equals = [node for score, node in scored if score == best]
    return _lines(equals[min(rank, len(equals) - 1)])


def _number_lines(holes: Mapping[str, Mapping[Lines, Sequence[str]]]) -> Iterator[Slot]:
    """Places that lie within others are one with these; numbers count from 1."""
    number = 0
    for owner in sorted(holes):
        outer = [lines for lines in holes[owner] if not any(other != lines and other.holds(lines) for other in holes[owner])]
        for lines in sorted(outer):
            number += 1
            reasons = [reason for other, texts in holes[owner].items() if lines.holds(other) for reason in texts]
            yield Slot(number, owner, lines, tuple(dict.fromkeys(reasons)))


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """All statements inside a node that are no definitions of their own."""
    for child in ast.walk(node):
        if isinstance(child, ast.stmt) and child is not node and not isinstance(child, Scope):
            yield child


def _children(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements directly inside a statement."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
            yield from _children(child)


def _header(node: ast.stmt) -> Iterable[ast.AST]:
    return [child for child in ast.iter_child_nodes(node) if not isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case))]


def _lines(node: ast.stmt) -> Lines:
    decorators = node.decorator_list if isinstance(node, Scope) else []
    return Lines(min([node.lineno, *(decorator.lineno for decorator in decorators)]), node.end_lineno or node.lineno)


def _text(text: str, node: ast.stmt) -> str:
    first, last = _lines(node)
    return "\n".join(text.splitlines()[first - 1 : last]) + "\n"


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, Scope):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _is_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"
