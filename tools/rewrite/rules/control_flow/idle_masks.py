"""Masks that are left out where they mask nothing: `if mask is None and x.eq(pad).any(): mask = x.eq(pad)`."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.rules.rule import Rule


class KeepIdleMasks(Rule):
    """Take a mask that masks nothing for none: `if mask is None and x.eq(pad).any(): mask = x.eq(pad)` → `if mask is None: mask = x == pad`.

    Whether it masks anything depends on data, which no tracing can ask, and whether there is a mask would be another structure. Of
    `if not mask.any(): mask = None` nothing is left, likewise. `if mask.any(): x[mask] = 0` sets nothing where the mask has nothing, and needs no
    branch. A note says so. Declines where the branch does anything else, and where the
    mask was not seen to be of bools.
    """

    KEEP = ("def f(mask, x):\n    if mask is None and x:\n        mask = x\n    return mask\n",)
    # Which tensors are masks is only observed: `tests/tools/rewrite/fixtures/idioms/masks.py` has the cases.

    def leave_If(self, original: cst.If, updated: cst.If) -> cst.FlattenSentinel[cst.BaseStatement] | cst.RemovalSentinel | None:
        if original.orelse is not None or isinstance(self.context.parent(), cst.If) or self.context.constructing:
            return None
        if self._masks_where_any(original):
            self.context.drop_holes(original.test)
            assert isinstance(updated.body, cst.IndentedBlock)
            return cst.FlattenSentinel(_with_comments(updated, updated.body.body))
        match original.body:
            case cst.IndentedBlock(
                body=[cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value)])]
            ):
                pass
            case _:
                return None
        match original.test:
            case cst.BooleanOperation(left=left, operator=cst.And(), right=right) if _is_none(left, name):
                return self._without_asking(original, updated, _asked(right), value)
            case cst.UnaryOperation(operator=cst.Not(), expression=inner) if isinstance(asked := _asked(inner), cst.Name):
                return self._without(original, asked, value) if asked.value == name else None
        return None

    def _masks_where_any(self, original: cst.If) -> bool:
        """Whether all that `if mask.any(): x[mask] = 0` does is to set what the mask selects, which without the question comes to the same."""
        match original.body:
            case cst.IndentedBlock(
                body=[
                    cst.SimpleStatementLine(
                        body=[
                            cst.Assign(
                                targets=[
                                    cst.AssignTarget(
                                        target=cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=mask, star=None))])
                                    )
                                ],
                                value=value,
                            )
                        ]
                    )
                ]
            ):
                asked = _asked_of_some(original.test)
                return asked is not None and asked.deep_equals(mask) and self._is_mask(mask) and _is_constant(value)
        return False

    def _without_asking(
        self, original: cst.If, updated: cst.If, asked: cst.BaseExpression | None, value: cst.BaseExpression
    ) -> cst.FlattenSentinel[cst.BaseStatement] | None:
        test = updated.test
        if asked is None or not asked.deep_equals(value) or not self._is_mask(asked) or not isinstance(test, cst.BooleanOperation):
            return None
        self._note(original)
        # No rule after this one is to take it for a branch on a tensor.
        return cst.FlattenSentinel([updated.with_changes(test=test.left)])

    def _without(self, original: cst.If, asked: cst.Name, value: cst.BaseExpression) -> cst.RemovalSentinel | None:
        if not (isinstance(value, cst.Name) and value.value == "None") or not self._is_mask(asked):
            return None
        self._note(original)
        return cst.RemoveFromParent()

    def _is_mask(self, node: cst.BaseExpression) -> bool:
        fact = self.context.observed(node)
        return fact is not None and is_tensor(fact) and set(fact.dtypes) == {"bool"}

    def _note(self, original: cst.If) -> None:
        self.context.drop_holes(original.test)
        line = self.context.span(original).line
        self.context.notes.append(f"{self.context.file.file.path}:{line}: a mask that masks nothing is kept, where the source has none")


def _is_none(node: cst.BaseExpression, name: str) -> bool:
    match node:
        case cst.Comparison(
            left=cst.Name(value=left), comparisons=[cst.ComparisonTarget(operator=cst.Is(), comparator=cst.Name(value="None"))]
        ):
            return left == name
    return False


def _asked(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The `x` of `x.any()`."""
    match node:
        case cst.Call(func=cst.Attribute(value=asked, attr=cst.Name("any")), args=[]):
            return asked
    return None


def _asked_of_some(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The mask of `mask.any()`, `mask.sum() > 0` and `len(x[mask]) > 0`."""
    match node:
        case cst.Comparison(
            left=count, comparisons=[cst.ComparisonTarget(operator=cst.GreaterThan() | cst.NotEqual(), comparator=cst.Integer(value="0"))]
        ):
            match count:
                case cst.Call(
                    func=cst.Attribute(value=cst.Call(func=cst.Attribute(value=mask, attr=cst.Name("sum")), args=[]), attr=cst.Name("item"))
                ):
                    return mask
                case cst.Call(func=cst.Attribute(value=mask, attr=cst.Name("sum")), args=[]):
                    return mask
                case cst.Call(
                    func=cst.Name("len"),
                    args=[cst.Arg(value=cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=mask, star=None))]))],
                ):
                    return mask
    return _asked(node)


def _is_constant(node: cst.BaseExpression) -> bool:
    """Whether an expression is a number, `-1e9` and `float("-inf")` too, so that it may be evaluated where nothing asks for it."""
    match node:
        case cst.UnaryOperation(expression=inner):
            return _is_constant(inner)
        case cst.Call(func=cst.Name("float"), args=[cst.Arg(value=cst.SimpleString())]):
            return True
        case cst.Attribute(value=cst.Name("np" | "math" | "numpy"), attr=cst.Name("inf" | "nan")):
            return True
    return isinstance(node, cst.Integer | cst.Float)


def _with_comments(branch: cst.If, statements: Sequence[cst.BaseStatement]) -> list[cst.BaseStatement]:
    """The statements of a branch, the first with the lines of comments above the branch."""
    first, *rest = statements
    assert isinstance(first, cst.SimpleStatementLine)
    return [first.with_changes(leading_lines=[*branch.leading_lines, *first.leading_lines]), *rest]
