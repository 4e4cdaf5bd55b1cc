"""Names that stand for a type of tensors: `FloatTensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor`, `self.make = type(x)`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence

from migrate_agent.tools.scan.nodes import walk

FLOATS = frozenset({"torch.Tensor", "torch.FloatTensor"})
Kind = Callable[[ast.expr], str]
"""The type of tensors that an expression is: `torch.FloatTensor`; "" for any other one."""


def type_that_stands_behind(name: ast.expr, holders: Sequence[ast.AST], kind: Kind) -> str:
    """The one type of tensors that a called name (`FloatTensor`, `self.FloatTensor`) is bound to, in the innermost of these functions, classes or files
    that binds it; "" where there is none, or where it may be something else."""
    if not isinstance(name, ast.Name | ast.Attribute):
        return ""
    text = ast.unparse(name)
    for holder in holders:
        bound = _bindings(holder).get(text, ())
        if (default := _default(holder, text)) is not None:
            usual = kind(default)
            return usual if usual in FLOATS and not bound and _all_hand_types(holders[-1], text) else ""
        if bound or _takes(holder, text):
            kinds = {"" if value is None else kind(value) for value in bound} or {""}
            return kinds.pop() if len(kinds) == 1 else ""
    return ""


def kind_of(value: ast.expr, dotted: Callable[[ast.expr], str], is_tensor: Callable[[ast.expr], bool], legacy: Sequence[str]) -> str:
    """The type of tensors that an expression is, wherever they lie."""
    match value:
        case ast.IfExp(body=one, orelse=other):
            kinds = {kind_of(part, dotted, is_tensor, legacy) for part in (one, other)}
            return kinds.pop() if len(kinds) == 1 else ""
        case ast.Call(func=ast.Name(id="type"), args=[asked], keywords=[]):
            return "torch.Tensor" if is_tensor(asked) else ""
        case ast.Name() | ast.Attribute():
            name = dotted(value).replace("torch.cuda.", "torch.")
            return name if name in legacy or name == "torch.Tensor" else ""
    return ""


def _bindings(holder: ast.AST) -> Mapping[str, Sequence[ast.expr | None]]:
    """By the text of a name, the values that statements bind it to; `None` for one that is not written out. Cached on the holder, as `walk` is: it is
    asked for each call."""
    bindings: dict[str, list[ast.expr | None]] | None = holder.__dict__.get("_bindings")
    if bindings is None:
        bindings = holder.__dict__["_bindings"] = {}
        for target, value in (pair for node in walk(holder) for pair in _bound(node)):
            bindings.setdefault(ast.unparse(target), []).append(value)
    return bindings


def _bound(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """What a statement binds, and to what; `None` for what is not written out."""
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((target, value) for target in targets)
            yield from ((one, None) for target in targets if isinstance(target, ast.Tuple | ast.List) for one in target.elts)
        case ast.AnnAssign(target=target, value=value):
            yield target, value
        case ast.For(target=target) | ast.AugAssign(target=target) | ast.NamedExpr(target=target):
            yield target, None


def _default(holder: ast.AST, text: str) -> ast.expr | None:
    """What an argument of this name is where it is not given."""
    if not isinstance(holder, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    signature = holder.args
    named = [*signature.posonlyargs, *signature.args]
    by_place = zip(reversed(named), reversed(signature.defaults), strict=False)
    defaults = {one.arg: value for one, value in (*by_place, *zip(signature.kwonlyargs, signature.kw_defaults, strict=True))}
    return defaults.get(text)


def _all_hand_types(file: ast.AST, name: str) -> bool:
    """Whether all calls of a file that give an argument of this name give the type of something."""
    values = (keyword.value for node in walk(file) if isinstance(node, ast.Call) for keyword in node.keywords if keyword.arg == name)
    return all(isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "type" for value in values)


def _takes(holder: ast.AST, text: str) -> bool:
    """Whether a function takes an argument of this name."""
    if not isinstance(holder, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    signature = holder.args
    return any(
        one.arg == text
        for one in (*signature.posonlyargs, *signature.args, *signature.kwonlyargs, signature.vararg, signature.kwarg)
        if one is not None
    )
