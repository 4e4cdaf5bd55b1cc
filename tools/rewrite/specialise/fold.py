"""Puts values in the places of parameters and attributes of a helper, and folds what this decides."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import libcst as cst

from migrate_agent.tools.rewrite.specialise.bind import Bind
from migrate_agent.tools.rewrite.tables.helpers import symbols

PASSES = 8
"""At most so many passes over a text: each may decide what the next one folds."""


@dataclass(frozen=True)
class Plan:
    """What becomes of one helper.

    `bound`: parameter → text of its value. `attributes`: the same for attributes of the object. `dropped`: helper → its positional parameters, and those
    that no longer exist. `above`: the helper that `super().__init__` calls. `idle`: helpers that do nothing; `same`: those that give their argument back.
    `unread`: properties that nothing reads or sets.
    """

    bound: tuple[tuple[str, str], ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    dropped: tuple[tuple[str, tuple[str, ...], frozenset[str]], ...] = ()
    above: str = ""
    idle: frozenset[str] = frozenset()
    same: frozenset[str] = frozenset()
    unread: frozenset[str] = frozenset()


@cache
def folded(name: str, plan: Plan) -> str:
    """The text of a helper by a plan."""
    text = symbols()[name].text
    if plan == Plan():
        return text
    module = cst.parse_module(text)
    module = module.visit(_UnreadProperties(plan.unread)) if plan.unread else module
    module = module.visit(Bind(dict(plan.bound))) if plan.bound else module
    # Once: by position, a second pass would take other arguments.
    module = module.visit(_Drop(plan)) if plan.dropped else module
    for _ in range(PASSES):
        before = module.code
        module = module.visit(_Fold(plan))
        module = module.visit(_IdleMethods(_idle_methods(module)))
        if module.code == before:
            break
    gone = {*dict(plan.bound), *dict(plan.attributes)}
    return module.visit(_Docstrings(gone)).code if gone else module.code


def _value(node: cst.BaseExpression) -> tuple[Any] | None:
    """The value of a literal, in a tuple of one."""
    if isinstance(node, (cst.Name, cst.Integer, cst.Float, cst.SimpleString, cst.UnaryOperation, cst.Tuple)):
        try:
            return (ast.literal_eval(cst.Module([]).code_for_node(node).strip()),)
        except (ValueError, SyntaxError):
            return None
    return None


def _text(part: cst.BaseFormattedStringContent) -> str | None:
    """The text that a part of a formatted string always is; None where it is computed, or would need another spelling."""
    if isinstance(part, cst.FormattedStringText):
        return part.value
    if not isinstance(part, cst.FormattedStringExpression) or part.format_spec is not None or part.conversion not in (None, "r"):
        return None
    match _value(part.expression):
        case (str() as word,) if word.isidentifier():
            return repr(word) if part.conversion else word
    return None


class _UnreadProperties(cst.CSTTransformer):
    """Takes properties out of a class, with what sets them."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> Any:
        decorators = [cst.Module([]).code_for_node(one.decorator) for one in original_node.decorators]
        name = original_node.name.value
        of_property = any(text == "property" or text.startswith(f"{name}.") for text in decorators)
        return cst.RemoveFromParent() if name in self.names and of_property else updated_node


class _Drop(cst.CSTTransformer):
    """Takes arguments out of calls whose parameters no longer exist."""

    def __init__(self, plan: Plan) -> None:
        self.above = plan.above
        self.dropped = {name: (positional, gone) for name, positional, gone in plan.dropped}

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        func = updated_node.func
        name = func.value if isinstance(func, cst.Name) else ""
        if isinstance(func, cst.Attribute) and cst.Module([]).code_for_node(func) == "super().__init__":
            name = self.above
        return _without_arguments(updated_node, *self.dropped[name]) if name in self.dropped else updated_node


class _Fold(cst.CSTTransformer):
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.attributes = dict(plan.attributes)

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        text = self.attributes.get(original_node.attr.value)
        if text is None or not isinstance(original_node.value, cst.Name) or original_node.value.value != "self":
            return updated_node
        return cst.parse_expression(text)

    def leave_AssignTarget(self, original_node: cst.AssignTarget, updated_node: cst.AssignTarget) -> cst.AssignTarget:
        return original_node  # an attribute that is set stays a place, and goes with its statement

    def leave_AnnAssign(self, original_node: cst.AnnAssign, updated_node: cst.AnnAssign) -> cst.AnnAssign:
        return updated_node.with_changes(target=original_node.target)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        func = updated_node.func
        gives_argument = isinstance(func, cst.Name) and func.value in self.plan.same and len(updated_node.args) == 1
        return updated_node.args[0].value if gives_argument else updated_node

    def leave_Comparison(self, original_node: cst.Comparison, updated_node: cst.Comparison) -> cst.BaseExpression:
        if len(updated_node.comparisons) != 1:
            return updated_node
        target = updated_node.comparisons[0]
        left, right = _value(updated_node.left), _value(target.comparator)
        outcome = _compare(target.operator, left[0], right[0]) if left and right else None
        return updated_node if outcome is None else cst.Name(str(outcome))

    def leave_UnaryOperation(self, original_node: cst.UnaryOperation, updated_node: cst.UnaryOperation) -> cst.BaseExpression:
        value = _value(updated_node.expression)
        return cst.Name(str(not value[0])) if value and isinstance(updated_node.operator, cst.Not) else updated_node

    def leave_BooleanOperation(self, original_node: cst.BooleanOperation, updated_node: cst.BooleanOperation) -> cst.BaseExpression:
        both = isinstance(updated_node.operator, cst.And)
        if value := _value(updated_node.left):
            return updated_node.right if bool(value[0]) == both else updated_node.left
        value = _value(updated_node.right)
        if value and isinstance(value[0], bool) and _is_test(updated_node.left):
            return updated_node.left if value[0] == both else updated_node.right
        return updated_node

    def leave_IfExp(self, original_node: cst.IfExp, updated_node: cst.IfExp) -> cst.BaseExpression:
        value = _value(updated_node.test)
        return updated_node if value is None else updated_node.body if value[0] else updated_node.orelse

    def leave_FormattedString(self, original_node: cst.FormattedString, updated_node: cst.FormattedString) -> cst.BaseExpression:
        """`f"{'weight'}_{suffix}"` → `f"weight_{suffix}"`."""
        parts: list[cst.BaseFormattedStringContent] = []
        for part in updated_node.parts:
            text = _text(part)
            if text is not None and parts and isinstance(parts[-1], cst.FormattedStringText):
                parts[-1] = cst.FormattedStringText(parts[-1].value + text)
            else:
                parts.append(part if text is None else cst.FormattedStringText(text))
        return updated_node.with_changes(parts=parts)

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.IndentedBlock:
        statements: list[cst.BaseStatement] = []
        for statement in updated_node.body:
            statements += self._expanded(statement)
            if statements and _ends(statements[-1]):
                break
        return updated_node.with_changes(body=statements or [cst.SimpleStatementLine([cst.Pass()])])

    def _expanded(self, statement: cst.BaseStatement) -> list[cst.BaseStatement]:
        if isinstance(statement, cst.If):
            return self._decided(statement)
        if isinstance(statement, cst.For) and (value := _value(statement.iter)) and value[0] == ():
            return []
        if not isinstance(statement, cst.SimpleStatementLine):
            return [statement]
        parts = [part for small in statement.body for part in self._single(small)]
        remaining = [part for part in parts if not self._is_nothing(part)]
        if len(remaining) == len(statement.body) and all(new is old for new, old in zip(remaining, statement.body, strict=True)):
            return [statement]
        first = [statement.with_changes(body=[part.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)]) for part in remaining[:1]]
        return [*first, *(cst.SimpleStatementLine([part.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)]) for part in remaining[1:])]

    def _decided(self, statement: cst.If) -> list[cst.BaseStatement]:
        value = _value(statement.test)
        alternative = statement.orelse
        if value is None:
            if not isinstance(alternative, cst.If):
                return [statement]
            rest = self._decided(alternative)
            if len(rest) == 1 and isinstance(rest[0], cst.If):
                return [statement.with_changes(orelse=rest[0])]
            return [statement.with_changes(orelse=cst.Else(cst.IndentedBlock(rest)) if rest else None)]
        if value[0]:
            return _statements(statement.body)
        if alternative is None:
            return []
        return self._decided(alternative) if isinstance(alternative, cst.If) else _statements(alternative.body)

    def _single(self, small: cst.BaseSmallStatement) -> list[cst.BaseSmallStatement]:
        """Several assignments in one as one each, where an attribute among them goes."""
        if not isinstance(small, cst.Assign) or len(small.targets) != 1:
            return [small]
        target, value = small.targets[0].target, small.value
        if not (isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple) and len(target.elements) == len(value.elements)):
            return [small]
        pairs = [(place.value, given.value) for place, given in zip(target.elements, value.elements, strict=True)]
        own = [(place, given) for place, given in pairs if isinstance(place, cst.Attribute)]
        remaining = [(place, given) for place, given in own if place.attr.value not in self.attributes]
        if len(own) < len(pairs) or len(remaining) == len(own):
            return [small]
        return [cst.Assign([cst.AssignTarget(place)], given) for place, given in remaining]

    def _is_nothing(self, part: cst.BaseSmallStatement) -> bool:
        if isinstance(part, (cst.Assign, cst.AnnAssign)) and (isinstance(part, cst.AnnAssign) or len(part.targets) == 1):
            target = part.target if isinstance(part, cst.AnnAssign) else part.targets[0].target
            if isinstance(target, cst.Name) and isinstance(part.value, cst.Name):
                return target.value == part.value.value
            own = isinstance(target, cst.Attribute) and isinstance(target.value, cst.Name) and target.value.value == "self"
            return own and isinstance(target, cst.Attribute) and target.attr.value in self.attributes
        if isinstance(part, cst.Expr) and isinstance(part.value, cst.Call):
            return isinstance(part.value.func, cst.Name) and part.value.func.value in self.plan.idle
        return False


def _statements(body: cst.BaseSuite) -> list[cst.BaseStatement]:
    if isinstance(body, cst.IndentedBlock):
        return list(body.body)
    return [cst.SimpleStatementLine([part]) for part in body.body if isinstance(part, cst.BaseSmallStatement)]


def _ends(statement: cst.BaseStatement) -> bool:
    return (
        isinstance(statement, cst.SimpleStatementLine) and bool(statement.body) and isinstance(statement.body[-1], (cst.Return, cst.Raise))
    )


def _is_test(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Comparison) or (isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not))


def _compare(operator: cst.BaseCompOp, left: Any, right: Any) -> bool | None:
    if isinstance(operator, (cst.Is, cst.IsNot)):
        # Two literals of other kinds are compared by identity nowhere.
        identical = left is right if left is None or right is None or isinstance(left, bool) or isinstance(right, bool) else None
        return identical if identical is None else identical == isinstance(operator, cst.Is)
    if isinstance(operator, (cst.Equal, cst.NotEqual)):
        return bool(left == right) == isinstance(operator, cst.Equal)
    if isinstance(operator, (cst.In, cst.NotIn)) and isinstance(right, tuple):
        return (left in right) == isinstance(operator, cst.In)
    return None


def _without_arguments(call: cst.Call, positional: Sequence[str], gone: frozenset[str]) -> cst.Call:
    if any(argument.star for argument in call.args):
        return call
    remaining, place = [], 0
    for argument in call.args:
        name = argument.keyword.value if argument.keyword else positional[place] if place < len(positional) else ""
        place += argument.keyword is None
        if name not in gone:
            remaining.append(argument)
    if len(remaining) == len(call.args):
        return call
    if remaining:
        remaining[-1] = remaining[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return call.with_changes(args=remaining)


def _idle_methods(module: cst.Module) -> frozenset[str]:
    """Private methods of the class that do nothing."""
    node = module.body[-1] if module.body else None
    parts = node.body.body if isinstance(node, cst.ClassDef) else ()
    methods = [part for part in parts if isinstance(part, cst.FunctionDef) and not part.decorators]
    return frozenset(
        method.name.value
        for method in methods
        if method.name.value.startswith("_") and not method.name.value.startswith("__") and is_idle(method)
    )


def is_idle(function: cst.FunctionDef) -> bool:
    """Whether a function does nothing."""
    statements = _statements(function.body)
    return all(
        isinstance(s, cst.SimpleStatementLine) and all(_is_text(part) or isinstance(part, cst.Pass) for part in s.body) for s in statements
    )


def gives_back(function: cst.FunctionDef) -> bool:
    """Whether a function of one parameter gives it back as it is."""
    params = function.params
    only = (
        len(params.params) == 1
        and not params.kwonly_params
        and isinstance(params.star_arg, cst.MaybeSentinel)
        and params.star_kwarg is None
    )
    statements = [s for s in _statements(function.body) if not (isinstance(s, cst.SimpleStatementLine) and all(map(_is_text, s.body)))]
    if not only or len(statements) != 1 or not isinstance(statements[0], cst.SimpleStatementLine):
        return False
    part = statements[0].body[0]
    return isinstance(part, cst.Return) and isinstance(part.value, cst.Name) and part.value.value == params.params[0].name.value


def gives_literal(function: cst.FunctionDef) -> bool:
    """Whether all that is left of a function is a literal."""
    parts = [part for s in _statements(function.body) if isinstance(s, cst.SimpleStatementLine) for part in s.body if not _is_text(part)]
    last = parts[0] if len(parts) == 1 else None
    return isinstance(last, cst.Return) and last.value is not None and _value(last.value) is not None


def _is_text(part: cst.CSTNode) -> bool:
    return isinstance(part, cst.Expr) and isinstance(part.value, (cst.SimpleString, cst.ConcatenatedString))


class _IdleMethods(cst.CSTTransformer):
    """Takes idle methods and their calls out of a class."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> Any:
        return cst.RemoveFromParent() if original_node.name.value in self.names else updated_node

    def leave_Expr(self, original_node: cst.Expr, updated_node: cst.Expr) -> Any:
        call = updated_node.value
        func = call.func if isinstance(call, cst.Call) else None
        own = isinstance(func, cst.Attribute) and isinstance(func.value, cst.Name) and func.value.value == "self"
        return cst.RemoveFromParent() if own and isinstance(func, cst.Attribute) and func.attr.value in self.names else updated_node


class _Docstrings(cst.CSTTransformer):
    """Takes the sentences out of docstrings that speak of what no longer exists."""

    def __init__(self, gone: set[str]) -> None:
        self.gone = gone

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.SimpleString:
        text = updated_node.value
        if not text.startswith('"""') or not any(f"`{name}`" in text for name in self.gone):
            return updated_node
        lines = [self._pruned(line) for line in text[3:-3].split("\n")]
        new = re.sub(r"\n(\s*\n){2,}", "\n\n", "\n".join(line for line in lines if line is not None))
        return updated_node.with_changes(value=f'"""{new.lstrip()}"""') if new.strip() else updated_node

    def _pruned(self, line: str) -> str | None:
        if not any(f"`{name}`" in line for name in self.gone):
            return line
        remaining = [self._clauses(sentence) for sentence in re.split(r"(?<=\.)\s+", line.strip())]
        rest = " ".join(filter(None, remaining))
        return line[: len(line) - len(line.lstrip())] + rest if rest else None

    def _clauses(self, sentence: str) -> str:
        """The sentence without the clauses that speak of what is gone; "" where its first one does."""
        clauses = sentence.split("; ")
        remaining = [clause for clause in clauses if not any(f"`{name}`" in clause for name in self.gone)]
        if not remaining or remaining[0] != clauses[0]:
            return ""
        return "; ".join(remaining).rstrip(".") + ("." if sentence.endswith(".") else "")
