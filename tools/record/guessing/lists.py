"""Lists that a constructor takes apart: `[x_dim, self.y_dim, h_dim] = dims`, where members may be lists themselves."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Sequence
from typing import Any

from migrate_agent.tools.record.guessing.choices import nodes_of, value_of_name
from migrate_agent.tools.record.guessing.reads import Holder, arguments, handed_on, names_around
from migrate_agent.tools.record.guessing.rows import parameter_texts

DEPTH = 3
"""Through how many constructors a member is followed."""
ITERATING = frozenset({"len", "enumerate", "zip", "reversed", "sum", "list", "tuple", "max", "min"})
MOST_ITEMS = 8
"""Of a list that is made for a constructor which reads it by number."""


def list_text(cls: Any, name: str, depth: int = DEPTH) -> str:
    """The text of a list with the members that the constructor, or what it hands the list to, takes it apart into; "" where none does."""
    for holder in handed_on(Holder(cls, name), 2) if depth else ():
        if not holder.path and (parts := _taken_apart(holder)):
            return f"[{', '.join(text for part in parts for text in _member_texts(holder.code, part, depth))}]"
        if not holder.path and (parts := _rows_of(holder)):
            row = f"({', '.join(text for part in parts for text in _member_texts(holder.code, part, depth))},)"
            return f"[{row}, {row}]"
    return ""


def _rows_of(holder: Holder) -> Sequence[ast.expr]:
    """What the members of a parameter are taken apart into, where a constructor goes through it: `for size, hop in sizes:`."""
    for node in nodes_of(constructor(holder.code)):
        match node:
            case ast.For(target=ast.Tuple(elts=parts), iter=ast.Name(id=read)) if read == holder.name:
                return parts
    return ()


def _taken_apart(holder: Holder) -> Sequence[ast.expr]:
    """What a parameter of a constructor is taken apart into there, or in a method that reads the attribute which keeps it."""
    names = {holder.name}
    for node in nodes_of(constructor(holder.code)):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=parts) | ast.List(elts=parts)], value=ast.Name(id=read)) if read == holder.name:
                return parts
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self")) as kept], value=ast.Name(id=read)) if read == holder.name:
                names.add(ast.unparse(kept))
    for node in nodes_of(holder.code) if inspect.isclass(holder.code) else ():
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Attribute() as source) if ast.unparse(source) in names:
                return parts
    return ()


def constructor(code: Any) -> Any:
    """The constructor of a class, its own or a base's; a function as it is; None of anything else."""
    made = getattr(code, "__init__", None) if inspect.isclass(code) else code
    return made if inspect.isfunction(made) else None


def _member_texts(code: Any, part: ast.expr, depth: int) -> Iterator[str]:
    """The texts of what one target takes: two of one with a star."""
    target = part.value if isinstance(part, ast.Starred) else part
    name = target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""
    number = next((text for text in parameter_texts(name, "") if text.isdigit()), "64")
    if isinstance(part, ast.Starred):
        yield from (number, number)
    else:
        lists = [text for node in nodes_of(constructor(code)) for text in _lists(code, node, ast.unparse(target), number, depth)]
        yield max(lists, key=_size, default=number)


def _lists(code: Any, node: ast.AST, name: str, number: str, depth: int) -> Iterator[str]:
    """Texts of the list that a variable of a constructor, or an attribute of `self`, is by what a node does with it; none where it may be a number."""
    if count := items_of(node, name):
        yield f"[{', '.join([number] * min(count, MOST_ITEMS))}]"
    elif isinstance(node, ast.Call) and depth > 1:
        called = _base(code, node.func) or value_of_name(node.func, names_around(code))
        if constructor(called) is not None and str(called.__module__).partition(".")[0] != "torch":
            for parameter, value in arguments(called, node):
                yield from _lists_of_argument(called, parameter, value, name, number, depth - 1)


def _base(code: Any, function: ast.expr) -> Any:
    """The next class whose constructor `super().__init__` is."""
    match function:
        case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr="__init__") if inspect.isclass(code):
            return code.__mro__[1]
    return None


def _lists_of_argument(called: Any, parameter: str, value: ast.expr, name: str, number: str, depth: int) -> Iterator[str]:
    """The texts of the list that a variable is by what reads the argument in which it is handed on: alone, or as a member of a list."""
    if _is(value, name):
        yield from filter(None, [list_text(called, parameter, depth)])
        yield from (text for node in nodes_of(constructor(called)) for text in _lists(called, node, parameter, number, 1))
    elif isinstance(value, ast.List | ast.Tuple) and any(_is(one, name) for one in value.elts):
        members = _elements(list_text(called, parameter, depth))
        yield from (
            ast.unparse(member) for one, member in zip(value.elts, members, strict=False) if _is(one, name) and _size(ast.unparse(member))
        )


def _size(text: str) -> int:
    return len(_elements(text))


def _elements(text: str) -> Sequence[ast.expr]:
    node = ast.parse(text, mode="eval").body if text else None
    return node.elts if isinstance(node, ast.List) else ()


def items_of(node: ast.AST, name: str) -> int:
    """How many items of a name a node reads: two where it goes through all of them."""
    match node:
        case ast.Subscript(value=read, slice=ast.Constant(value=int(index))) if _is(read, name):
            return index + 1
        case ast.Subscript(value=read, slice=ast.Name() | ast.Slice() | ast.UnaryOp() | ast.BinOp()) if _is(read, name):
            return 2
        case ast.Call(func=ast.Name(id="max" | "min"), args=[_, _, *_]):
            return 0  # of numbers
        case ast.Call(func=ast.Name(id=function), args=args) if function in ITERATING and any(_is(arg, name) for arg in args):
            return 2
        case ast.For(iter=read) | ast.comprehension(iter=read) | ast.Starred(value=read, ctx=ast.Load()) if _is(read, name):
            return 2
    return 0


def _is(node: ast.expr, name: str) -> bool:
    """Whether an expression is this variable, or this attribute of `self`."""
    return isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) == name
