"""Modules of a list that a tensor chooses: `self.experts[i.item()](x)` is a branch on the number."""

from __future__ import annotations

import ast

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor, span_of
from migrate_agent.tools.rewrite.rules.calls.traced_integers import INTEGERS
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.rule import Rule

LISTS = frozenset({"module:torch.nn.ModuleList", "module:torch.nn.modules.container.ModuleList"})
PLACES = frozenset({"topk", "argmax", "argmin", "argsort", "sort", "max", "min", "multinomial"})
"""Functions whose results are places, which are never negative."""


class SwitchModules(Rule):
    """Branch on the number of a module: `self.experts[i.item()](x)` → `lax.switch(i, list(self.experts), x)`; so where a name holds `i.item()`.

    Declines where the module does anything but be called with tensors, and where `i` was not observed to be an integer tensor without axes. What a
    negative number chooses is counted from the end, as Python does it, unless it comes from `topk`, `argmax` and the like.
    """

    KEEP = ("def f(experts: list, i, x):\n    return experts[i](x)\n",)

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        if chooses_module(self.context, original):
            return _read(updated)
        index = self._chosen(original)
        if index is None or not isinstance(updated.func, cst.Subscript):
            return None
        new = cst.ensure_type(updated.func.slice[0].slice, cst.Index).value
        number = new if _is_place(self.context, index) else self.context.build("{i} % len({m})", i=new, m=updated.func.value)
        call = self.context.build("lax.switch({i}, list({m}))", i=number, m=updated.func.value)
        return cst.ensure_type(call, cst.Call).with_changes(args=[*cst.ensure_type(call, cst.Call).args, *updated.args])

    def _chosen(self, call: cst.Call) -> cst.BaseExpression | None:
        """The tensor that says which module an original call calls, or `None`."""
        index = _index(self.context, call)
        if index is None:
            return None
        if isinstance(index, cst.Name):
            return _bound(self.context, index.value) if _only_chooses(self.context, index.value) else None
        return read if (read := _read(index)) is not None and _is_integer(self.context, read) else None


def chooses_module(context: Context, call: cst.Call) -> bool:
    """Whether an original call, the one that is being left, reads out a number that only says which module of a list is called."""
    read = _read(call)
    if read is None or context.constructing or not _is_integer(context, read):
        return False
    match list(reversed(context.stack[-4:])):
        case [cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]), *_]:
            return _only_chooses(context, name)
        case [cst.Index(), cst.SubscriptElement(), cst.Subscript() as chosen, cst.Call() as outer]:
            return outer.func is chosen and _index(context, outer) is call
    return False


def _read(call: cst.BaseExpression) -> cst.BaseExpression | None:
    """`i` of `int(i)` or `i.item()`."""
    match call:
        case cst.Call(func=cst.Name("int"), args=[cst.Arg(keyword=None, star="", value=read)]):
            return read
        case cst.Call(func=cst.Attribute(value=read, attr=cst.Name("item")), args=[]):
            return read
    return None


def _is_integer(context: Context, node: cst.BaseExpression) -> bool:
    fact = context.observed(node)
    return is_tensor(fact) and fact is not None and not any(fact.shapes) and bool(fact.dtypes) and set(fact.dtypes) <= INTEGERS


def _index(context: Context, call: cst.Call) -> cst.BaseExpression | None:
    """The index of the list of modules of which an original call calls one, with tensors alone."""
    match call.func:
        case cst.Subscript(value=value, slice=[cst.SubscriptElement(slice=cst.Index(value=index))]):
            fact = context.observed(value)
            plain = all(
                not argument.star and argument.keyword is None and is_tensor(context.observed(argument.value)) for argument in call.args
            )
            return index if fact is not None and set(fact.kinds) <= LISTS and plain and call.args else None
    return None


def _only_chooses(context: Context, name: str) -> bool:
    """Whether a local name holds one number that was read out, and each use of it calls a module of a list."""
    function = context.function
    if function is None or _bound(context, name) is None:
        return False
    parents = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    uses = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)]
    return bool(uses) and all(_is_call_of_chosen(context, parents.get(use), parents) for use in uses)


def _is_call_of_chosen(context: Context, chosen: ast.AST | None, parents: dict[ast.AST, ast.AST]) -> bool:
    if not isinstance(chosen, ast.Subscript):
        return False
    call, fact = parents.get(chosen), context.facts.observed.get(span_of(chosen.value, context.file.lines))
    if not isinstance(call, ast.Call) or call.func is not chosen or fact is None or not set(fact.kinds) <= LISTS or call.keywords:
        return False
    return bool(call.args) and all(is_tensor(context.facts.observed.get(span_of(one, context.file.lines))) for one in call.args)


def _bound(context: Context, name: str) -> cst.BaseExpression | None:
    """What `i` is in the one statement `name = i.item()` that binds a local name."""
    function = context.function
    stores = (
        [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)] if function else []
    )
    values = [
        node.value
        for node in (ast.walk(function) if function else ())
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name
    ]
    return _read(cst.parse_expression(ast.unparse(values[0]))) if len(stores) == len(values) == 1 else None


def _is_place(context: Context, index: cst.BaseExpression) -> bool:
    """Whether an index is a part of what `topk` and the like gave."""
    root = index
    while isinstance(root, (cst.Subscript, cst.Attribute)):
        root = root.value
    if not isinstance(root, cst.Name) or context.function is None:
        return False
    bound = [
        node.value
        for node in ast.walk(context.function)
        if isinstance(node, ast.Assign)
        and any(isinstance(part, ast.Name) and part.id == root.value for target in node.targets for part in ast.walk(target))
    ]
    return bool(bound) and all(
        isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in PLACES for value in bound
    )
