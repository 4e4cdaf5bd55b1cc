"""Templates of the tables, parsed once and filled with libcst nodes.

`registry` describes the language. Filling adds parentheses only where precedence needs them, and
drops call arguments whose placeholder the caller left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from functools import cache

import libcst as cst

PLACEHOLDER = re.compile(r"\{(\*?)([A-Za-z_]\w*)(?:=([^{}]*))?\}")
_MARK = "_placeholder_"

ATOMIC = (
    cst.Name,
    cst.Attribute,
    cst.Call,
    cst.Subscript,
    cst.SimpleString,
    cst.FormattedString,
    cst.List,
    cst.Dict,
    cst.Set,
    cst.ListComp,
    cst.SetComp,
    cst.DictComp,
    cst.Ellipsis,
)
NUMBERS = (cst.Integer, cst.Float, cst.Imaginary)
ENCLOSING = (
    cst.Arg,
    cst.Index,
    cst.Element,
    cst.DictElement,
    cst.Assign,
    cst.AnnAssign,
    cst.AugAssign,
    cst.Return,
    cst.Expr,
    cst.If,
    cst.While,
    cst.For,
    cst.Param,
    cst.Assert,
    cst.Slice,
    cst.FormattedStringExpression,
    cst.AssignTarget,
    cst.Lambda,
)
"""Parents inside which any expression but a tuple, a generator, a walrus or a yield stands without
parentheses.
"""
BREAKING = (
    cst.BinaryOperation,
    cst.BooleanOperation,
    cst.UnaryOperation,
    cst.Comparison,
    cst.IfExp,
    cst.ConcatenatedString,
    cst.Call,
    cst.Attribute,
)
LOOSE = (cst.Tuple, cst.GeneratorExp, cst.NamedExpr, cst.Yield, cst.Lambda)


class Missing(Exception):
    """A template needs an argument that the caller left out and that has no default."""


def wrap(node: cst.BaseExpression, parent: cst.CSTNode | None) -> cst.BaseExpression:
    """`node`, in parentheses where its precedence under `parent` needs them."""
    if node.lpar or isinstance(node, ATOMIC):
        return node
    # `1.shape` is a syntax error, `(1).shape` is not.
    if isinstance(node, NUMBERS):
        return _parenthesised(node) if isinstance(parent, cst.Attribute) else node
    if isinstance(parent, ENCLOSING) and not isinstance(node, LOOSE):
        return node
    if 0 < _precedence(parent) < _precedence(node):
        return node
    return _parenthesised(node)


def unbroken(node: cst.BaseExpression) -> cst.BaseExpression:
    """`node`, in parentheses where it has a line break outside of brackets, as an argument of a
    call may have.
    """
    if node.lpar or not isinstance(node, BREAKING):
        return node
    text = cst.Module([]).code_for_node(node)
    if "\n" not in text:
        return node
    try:
        # Brackets inside may already hold the line breaks; only the parser can tell.
        ast.parse(text)
    except SyntaxError:
        return _parenthesised(node)
    return node


_BINARY = {
    cst.BitOr: 7, cst.BitXor: 8, cst.BitAnd: 9, cst.LeftShift: 10, cst.RightShift: 10, cst.Add: 11, cst.Subtract: 11,
    cst.Multiply: 12, cst.Divide: 12, cst.FloorDivide: 12, cst.Modulo: 12, cst.MatrixMultiply: 12, cst.Power: 14,
}  # fmt: skip


def _precedence(node: cst.CSTNode | None) -> int:
    """How tightly an operator binds; 0 for what is no operator."""
    match node:
        case cst.IfExp():
            return 2
        case cst.BooleanOperation():
            return 3 if isinstance(node.operator, cst.Or) else 4
        case cst.UnaryOperation():
            return 5 if isinstance(node.operator, cst.Not) else 13
        case cst.Comparison() | cst.ComparisonTarget():
            return 6
        case cst.BinaryOperation():
            return _BINARY.get(type(node.operator), 0)
    return 0


def _parenthesised(node: cst.BaseExpression) -> cst.BaseExpression:
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


@cache
def _parse(template: str) -> tuple[cst.BaseExpression, Mapping[str, str]]:
    defaults: dict[str, str] = {}

    def mark(match: re.Match[str]) -> str:
        star, name, default = match.groups()
        if default is not None:
            defaults[name] = default
        return f"{star}{_MARK}{name}"

    return cst.parse_expression(PLACEHOLDER.sub(mark, template)), defaults


class _Fill(cst.CSTTransformer):
    def __init__(
        self,
        arguments: Mapping[str, Sequence[cst.BaseExpression]],
        defaults: Mapping[str, str],
        variadic: frozenset[str],
        torch_defaults: Mapping[str, str],
    ) -> None:
        super().__init__()
        self.arguments, self.defaults, self.variadic, self.torch_defaults = arguments, defaults, variadic, torch_defaults
        self.parents: list[cst.CSTNode] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        self.parents.append(node)
        return True

    def on_leave(self, original_node, updated_node):  # type: ignore[no-untyped-def]
        self.parents.pop()
        if isinstance(original_node, cst.Call):
            return self._call(updated_node)
        if isinstance(original_node, cst.Name) and original_node.value.startswith(_MARK):
            return self._name(original_node.value.removeprefix(_MARK))
        return updated_node

    def _name(self, name: str) -> cst.BaseExpression:
        values = self.arguments.get(name)
        parent = self.parents[-1] if self.parents else None
        if values is None:
            if name not in self.defaults:
                return cst.Name(_MARK + name)
            values = (cst.parse_expression(self.defaults[name]),)
            if name in self.variadic:
                values = ()
        if name in self.variadic:
            return _sequence(values)
        return wrap(values[0], parent)

    def _call(self, call: cst.Call) -> cst.Call:
        arguments: list[cst.Arg] = []
        for index, argument in enumerate(call.args):
            value = argument.value
            if argument.star == "*" and isinstance(value, cst.Name) and value.value.startswith(_MARK):
                continue
            # Dropping it is right only where nothing positional follows that would move up.
            if name := _unfilled(value):
                if not self._followed(call.args[index:]) or not isinstance(value, cst.Name) or name not in self.torch_defaults:
                    continue
                argument = argument.with_changes(value=cst.parse_expression(self.torch_defaults[name]))
            arguments.append(argument)
        return call.with_changes(args=_commas(arguments))

    def _followed(self, arguments: Sequence[cst.Arg]) -> bool:
        """Whether the first argument and a later one are positional, so that dropping the first
        would shift the other.
        """
        first, *rest = arguments
        return first.keyword is None and any(a.keyword is None and not a.star and not _unfilled(a.value) for a in rest)


def _sequence(values: Sequence[cst.BaseExpression]) -> cst.BaseExpression:
    """The values as one tuple. A single value that is a tuple or list already is returned as it is."""
    # `x.permute((0, 2, 1))` and `x.permute(0, 2, 1)` mean the same.
    if len(values) == 1 and isinstance(values[0], (cst.Tuple, cst.List)):
        return wrap(values[0], None)
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    last = cst.Comma() if len(values) == 1 else cst.MaybeSentinel.DEFAULT
    elements = [cst.Element(value, comma=comma if i < len(values) - 1 else last) for i, value in enumerate(values)]
    return cst.Tuple(elements)


def _commas(arguments: Sequence[cst.Arg]) -> list[cst.Arg]:
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    count = len(arguments)
    return [
        argument.with_changes(comma=comma if i < count - 1 else cst.MaybeSentinel.DEFAULT, whitespace_after_arg=cst.SimpleWhitespace(""))
        for i, argument in enumerate(arguments)
    ]


class _Unfilled(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.name = ""

    def visit_Name(self, node: cst.Name) -> None:
        if node.value.startswith(_MARK):
            self.name = node.value.removeprefix(_MARK)


def _unfilled(node: cst.BaseExpression) -> str:
    visitor = _Unfilled()
    node.visit(visitor)
    return visitor.name


class _Splice(cst.CSTTransformer):
    """Replaces `*{xs}` arguments by the values themselves."""

    def __init__(self, arguments: Mapping[str, Sequence[cst.Arg]]) -> None:
        super().__init__()
        self.arguments = arguments

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        result: list[cst.Arg] = []
        for argument in updated_node.args:
            value = argument.value
            if argument.star == "*" and isinstance(value, cst.Name) and value.value.startswith(_MARK):
                result.extend(self.arguments.get(value.value.removeprefix(_MARK), ()))
            else:
                result.append(argument)
        return updated_node.with_changes(args=_commas(result))


def fill(
    template: str,
    arguments: Mapping[str, cst.BaseExpression],
    variadic: Mapping[str, Sequence[cst.Arg]] | None = None,
    torch_defaults: Mapping[str, str] | None = None,
) -> cst.BaseExpression:
    """The template as a tree, its placeholders replaced. Raises `Missing` where a needed argument
    was left out.

    An argument that was left out in front of a positional one gets torch's own default
    (`torch_defaults`), so that nothing shifts.
    """
    variadic = variadic or {}
    parsed, defaults = _parse(template)
    spliced = parsed.visit(_Splice(variadic))
    assert isinstance(spliced, cst.BaseExpression)
    values: dict[str, Sequence[cst.BaseExpression]] = {name: (value,) for name, value in arguments.items()}
    for name, spread in variadic.items():
        starred = [argument for argument in spread if argument.star]
        values[name] = [_starred_tuple(spread)] if starred else [argument.value for argument in spread]
    plain = frozenset(name for name, spread in variadic.items() if not any(argument.star for argument in spread))
    filled = spliced.visit(_Fill(values, defaults, plain, torch_defaults or {}))
    assert isinstance(filled, cst.BaseExpression)
    if name := _unfilled(filled):
        raise Missing(name)
    return filled


def _starred_tuple(arguments: Sequence[cst.Arg]) -> cst.BaseExpression:
    if len(arguments) == 1:
        return arguments[0].value
    kinds = [cst.StarredElement if argument.star else cst.Element for argument in arguments]
    return cst.Tuple([kind(argument.value) for kind, argument in zip(kinds, arguments, strict=True)])
