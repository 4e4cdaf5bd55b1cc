"""Puts values in the places of parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import libcst as cst


class Bind(cst.CSTTransformer):
    """Takes parameters out of the function, or out of the constructor of the class, and puts their values in their places."""

    def __init__(self, bound: Mapping[str, str]) -> None:
        self.bound = bound
        self.depth: list[str] = []

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self.depth.append(node.name.value)

    def leave_ClassDef(self, original_node: cst.ClassDef, updated_node: cst.ClassDef) -> cst.ClassDef:
        self.depth.pop()
        return updated_node

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.depth.append(node.name.value)

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        self.depth.pop()
        own = not self.depth or (len(self.depth) == 1 and original_node.name.value == "__init__")
        if not own:
            return updated_node
        body = updated_node.body.with_changes(body=self._substituted(updated_node.body.body))
        return updated_node.with_changes(params=self._without(updated_node.params), body=body)

    def _substituted(self, statements: Sequence[cst.CSTNode]) -> list[Any]:
        """The values stand for the names until a statement of the block gives a name another one."""
        bound, changed = dict(self.bound), list[Any]()
        for statement in statements:
            changed.append(statement.visit(_Substitute(dict(bound))))
            match statement:
                case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))])]):
                    bound.pop(name, None)
        return changed

    def _without(self, params: cst.Parameters) -> cst.Parameters:
        def without(listed: Sequence[cst.Param]) -> list[cst.Param]:
            rest = [param for param in listed if param.name.value not in self.bound]
            return [param.with_changes(comma=cst.MaybeSentinel.DEFAULT) for param in rest]

        words = without(params.kwonly_params)
        star: Any = params.star_arg
        if not words and isinstance(star, cst.ParamStar):
            star = cst.MaybeSentinel.DEFAULT
        return params.with_changes(params=without(params.params), kwonly_params=words, star_arg=star)


class _Substitute(cst.CSTTransformer):
    def __init__(self, bound: Mapping[str, str]) -> None:
        self.bound = bound

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        text = self.bound.get(original_node.value)
        return updated_node if text is None else cst.parse_expression(text)

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_AssignTarget(self, original_node: cst.AssignTarget, updated_node: cst.AssignTarget) -> cst.AssignTarget:
        return original_node if isinstance(original_node.target, cst.Name) else updated_node

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)
