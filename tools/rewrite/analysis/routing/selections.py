"""Calls that select places by values, and the form in which the code takes their result."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import NamedTuple


class Form(NamedTuple):
    """What is taken of the places: a `list` of indices of one `axis`, a `table` with a place in each row, its `columns`, or `tables`: a tuple of lists.

    `flat` says that the mask must have one axis. A `squeezed list` has no axis where there is a single place.
    """

    kind: str
    axis: int = 0
    flat: bool = False


class Selection(NamedTuple):
    """A call, the mask whose places it gives, their form, and the expressions around that give them this form."""

    call: ast.Call
    mask: ast.expr
    form: Form
    steps: tuple[ast.expr, ...] = ()


def peeled(node: ast.expr, dotted: Callable[[ast.expr], str]) -> Selection | None:
    """`mask.nonzero().squeeze()`, `adj.nonzero().t()`, `torch.where(mask)[0]`; `None` for anything else."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Call() as inner, attr=attr), keywords=[]):
            form = _after(attr, [ast.unparse(argument) for argument in node.args])
            selection = _called(inner, dotted)
            if form is not None and selection is not None and selection.form.kind == "table":
                return selection._replace(form=form, steps=(node,))
        case ast.Subscript(value=ast.Call() as inner, slice=index) if (selection := _called(inner, dotted)) is not None:
            match selection.form.kind, index:
                case "table", ast.Tuple(elts=[ast.Slice(lower=None, upper=None, step=None), ast.Constant(value=int() as axis)]):
                    return selection._replace(form=Form("list", axis), steps=(node,))
                case "tables", ast.Constant(value=int() as axis):
                    return selection._replace(form=Form("list", axis), steps=(node,))
    return _called(node, dotted) if isinstance(node, ast.Call) else None


def _after(method: str, arguments: list[str]) -> Form | None:
    """The form of a table of places after a method."""
    if method == "t" and not arguments:
        return Form("columns")
    if method == "squeeze" and not arguments:
        return Form("squeezed list", flat=True)
    lists = {"squeeze": (["1"], ["-1"]), "view": (["-1"],), "reshape": (["-1"],), "flatten": ([],)}
    return Form("list", flat=True) if arguments in lists.get(method, ()) else None


def _called(call: ast.Call, dotted: Callable[[ast.expr], str]) -> Selection | None:
    options = {option.arg: isinstance(option.value, ast.Constant) and option.value.value for option in call.keywords}
    name = dotted(call.func)
    if not set(options) <= {"as_tuple"}:
        return None
    form = Form("tables" if options.get("as_tuple", False) or name == "torch.where" else "table")
    if name in ("torch.where", "torch.nonzero"):
        return Selection(call, call.args[0], form) if len(call.args) == 1 and (name == "torch.nonzero" or not options) else None
    if isinstance(call.func, ast.Attribute) and call.func.attr == "nonzero" and not call.args and not name:
        return Selection(call, call.func.value, form)
    return None
