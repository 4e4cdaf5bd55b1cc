"""A model's answer put into the draft: only at the numbered places, or as one whole class. What reaches further is refused with the reason."""

from __future__ import annotations

import ast
import hashlib
import symtable
import textwrap
from collections.abc import Mapping, Sequence

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from migrate_agent.agent.model.numbered_holes import Lines, Slots

LONGEST = 60_000
"""Characters of an answer's code that are looked at."""


class Refused(Exception):
    """The answer is not used; the text says why, to the model and to the user."""


def splice(slots: Slots, answers: Mapping[int, str]) -> dict[str, str]:
    """The texts (`file:name` → text) with the answers in their places.

    Raises `Refused` for an answer to no place, one that is missing, does not parse, or defines what stands outside of its place.
    """
    slots_by_number = {slot.number: slot for slot in slots.slots}
    strange = sorted(set(answers) - set(slots_by_number))
    missing = sorted(set(slots_by_number) - set(answers))
    if strange:
        raise Refused(f"there is no hole {strange[0]}: only the holes may be written")
    if missing:
        raise Refused(f"hole {missing[0]} was not answered")
    changed: dict[str, str] = {}
    for owner, text in slots.texts.items():
        replacements = {
            slot.lines: (slot.number, _parsed(answers[slot.number], slot.number)) for slot in slots.slots if slot.owner == owner
        }
        if replacements:
            changed[owner] = _replaced(text, replacements)
    for owner, text in changed.items():
        check_definition(text, owner.rpartition(":")[2])
    return changed


def check_class(text: str, name: str) -> str:
    """A whole class as an answer. Raises `Refused` where it is anything but the definition of the class with this name."""
    text = textwrap.dedent(text).strip("\n") + "\n"
    check_definition(text, name)
    return text


def check_definition(text: str, name: str) -> None:
    """Raise `Refused` unless the text is Python and one statement that defines `name`."""
    if len(text) > LONGEST:
        raise Refused(f"the answer is longer than {LONGEST} characters")
    try:
        body = ast.parse(text).body
        symtable.symtable(text, "<answer>", "exec")
        cst.parse_module(text)
    except (SyntaxError, ValueError, cst.ParserSyntaxError, RecursionError) as error:
        raise Refused(f"it does not parse: {_first_line(error)}") from None
    defined = [getattr(node, "name", "") or ast.unparse(node).partition("\n")[0][:60] for node in body]
    right = len(body) == 1 and (not isinstance(body[0], (ast.ClassDef, ast.FunctionDef)) or body[0].name == name)
    if not right:
        extra = next((other for other in defined if other != name), "nothing")
        raise Refused(f"it touches more than {name}: it also holds `{extra}`" if name in defined else f"it does not define {name}")


def fingerprint(texts: Mapping[str, str]) -> str:
    """The same for texts that differ in comments, docstring-free formatting or quotes only."""
    digest = hashlib.sha256()
    for owner in sorted(texts):
        digest.update(f"{owner}\0{_meaning(texts[owner])}\0".encode())
    return digest.hexdigest()


def _meaning(text: str) -> str:
    try:
        return ast.dump(ast.parse(text))
    except (SyntaxError, ValueError):
        return text


def _parsed(code: str, number: int) -> Sequence[cst.BaseStatement]:
    code = textwrap.dedent(code.expandtabs(4)).strip("\n")
    if len(code) > LONGEST:
        raise Refused(f"hole {number}: the answer is longer than {LONGEST} characters")
    try:
        body = cst.parse_module(f"{code}\n").body
    except (cst.ParserSyntaxError, RecursionError) as error:
        raise Refused(f"hole {number} does not parse: {_first_line(error)}") from None
    if not body:
        raise Refused(f"hole {number} was answered with nothing")
    return body


def _replaced(text: str, replacements: Mapping[Lines, tuple[int, Sequence[cst.BaseStatement]]]) -> str:
    wrapper = MetadataWrapper(cst.parse_module(text))
    writer = _Writer(replacements)
    code = wrapper.visit(writer).code
    if writer.left:
        raise Refused(f"hole {writer.left[0]} has no place of its own any more")
    return code


class _Writer(cst.CSTTransformer):
    """Puts statements in the place of those on given lines. A place that is a definition takes only a definition of the same name."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, replacements: Mapping[Lines, tuple[int, Sequence[cst.BaseStatement]]]) -> None:
        super().__init__()
        self.places = dict(replacements)

    @property
    def left(self) -> list[int]:
        """Numbers that found no place."""
        return [number for number, _ in self.places.values()]

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> cst.CSTNodeT | cst.FlattenSentinel[cst.CSTNodeT]:
        result = super().on_leave(original_node, updated_node)
        if not isinstance(original_node, cst.BaseStatement):
            return result  # type: ignore[return-value]
        replacement = self.places.pop(self._lines(original_node), None)
        if replacement is None:
            return result  # type: ignore[return-value]
        number, body = replacement
        _check_same_definition(original_node, body, number)
        first, *others = body
        if isinstance(first, (cst.SimpleStatementLine, cst.BaseCompoundStatement)) and hasattr(original_node, "leading_lines"):
            first = first.with_changes(leading_lines=[*original_node.leading_lines, *first.leading_lines])
        return cst.FlattenSentinel([first, *others])  # type: ignore[list-item]

    def _lines(self, node: cst.BaseStatement) -> Lines:
        position = self.get_metadata(PositionProvider, node)
        first = position.start.line
        if isinstance(node, (cst.FunctionDef, cst.ClassDef)) and node.decorators:
            first = self.get_metadata(PositionProvider, node.decorators[0]).start.line
        return Lines(first, position.end.line)


def _check_same_definition(old: cst.BaseStatement, body: Sequence[cst.BaseStatement], number: int) -> None:
    named = old.name.value if isinstance(old, (cst.FunctionDef, cst.ClassDef)) else ""
    new = [node.name.value for node in body if isinstance(node, (cst.FunctionDef, cst.ClassDef))]
    if named and (new != [named] or len(body) != 1):
        raise Refused(f"hole {number} is the definition of {named}, and takes nothing but a definition of that name")
    if not named and any(isinstance(node, cst.ClassDef) for node in body):
        raise Refused(f"hole {number} is a statement, and takes no class: nothing outside the holes may be written")


def _first_line(error: BaseException) -> str:
    message = getattr(error, "message", "") or str(error)
    return " ".join(message.split())[:200]
