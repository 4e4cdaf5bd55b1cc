"""Sequences of layers that begin with an activation in place: what they are called with holds what that gives afterwards."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FunctionNode

Dotted = Callable[[ast.expr], str]
"""An expression → the dotted name that it stands for, or ""."""
ALLOCATING = frozenset({"torch.nn.Linear", *(f"torch.nn.{kind}{n}d" for kind in ("Conv", "ConvTranspose", "BatchNorm") for n in (1, 2, 3))})
"""Layers whose result is a new tensor: nothing behind them changes what the sequence was called with."""
WEIGHTED = frozenset(name for name in ALLOCATING if "Norm" not in name)
"""Of these, layers that always have a weight."""
ACTIVATIONS = frozenset(
    f"torch.nn.{name}" for name in "ReLU ReLU6 LeakyReLU ELU SELU CELU SiLU Mish Hardswish Hardsigmoid Hardtanh Threshold".split()
)
NORMS = frozenset({"torch.nn.utils.weight_norm", "torch.nn.utils.spectral_norm"})


def begins_with_relu(model: ClassModel, attribute: str, dotted: Dotted) -> bool:
    """Whether each value that a class gives to `self.<attribute>` is `nn.Sequential(nn.ReLU(inplace=True), nn.Conv2d(…), …)`."""
    values = list(_values(model, attribute))
    return bool(values) and all(_is_such(method, value, dotted) for method, value in values)


def begins_in_place(model: ClassModel, attribute: str, dotted: Dotted) -> bool:
    """Whether each value that a class gives to `self.<attribute>` is a sequence that begins with an activation in place and a layer whose
    result is new, or with a layer that has a weight, whose result is new too.

    Lists that are put together count by their first two elements: `nn.Sequential(*model)` with `model = down + [inner]`.
    """
    values = list(_values(model, attribute))
    return bool(values) and all(_changes_at_most_first(method, value, dotted) for method, value in values)


def _changes_at_most_first(method: FunctionNode, value: ast.expr | None, dotted: Dotted) -> bool:
    if not isinstance(value, ast.Call) or dotted(value.func) != "torch.nn.Sequential" or value.keywords:
        return False
    starts = _starts(method, ast.List(value.args, ast.Load()), frozenset())
    return bool(starts) and all(start is not None and _is_such_start(method, start, dotted) for start in starts)


def _is_such_start(method: FunctionNode, start: tuple[ast.expr, ...], dotted: Dotted) -> bool:
    meanings = [_meanings(method, item) for item in start]
    if not meanings:
        return False
    if _all(meanings[0], lambda one: dotted(one.func) in WEIGHTED):
        return True
    first = _all(meanings[0], lambda one: _is_activation(one, dotted))
    return first and len(meanings) > 1 and _all(meanings[1], lambda one: dotted(one.func) in ALLOCATING | NORMS)


def _is_activation(call: ast.Call, dotted: Dotted) -> bool:
    """Whether a call makes an activation that works in place: by keyword, or as the last argument by position."""
    flag = next((keyword.value for keyword in call.keywords if keyword.arg == "inplace"), call.args[-1] if call.args else None)
    return dotted(call.func) in ACTIVATIONS and isinstance(flag, ast.Constant) and flag.value is True


def _starts(method: FunctionNode, node: ast.expr, through: frozenset[str]) -> list[tuple[ast.expr, ...] | None]:
    """The first two elements, as far as there are so many, of each list that an expression may be; `None` where one is not known."""
    match node:
        case ast.List(elts=[]):
            return [()]
        case ast.List(elts=[ast.Starred(value=inner), *others]):
            return _joined(_starts(method, inner, through), _starts(method, ast.List(others, ast.Load()), through))
        case ast.List(elts=[first, *others]):
            return _joined([(first,)], _starts(method, ast.List(others[:1], ast.Load()), through))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _joined(_starts(method, left, through), _starts(method, right, through))
        case ast.Name(id=name) if name not in through:
            bound = _meanings(method, node)
            return [start for one in bound for start in _starts(method, one, through | {name})] if bound else [None]
    return [None]


def _joined(left: list[tuple[ast.expr, ...] | None], right: list[tuple[ast.expr, ...] | None]) -> list[tuple[ast.expr, ...] | None]:
    """Each start of one list continued by each of another, where it is too short."""
    long = [start for start in left if start is None or len(start) > 1]
    short = [start for start in left if start is not None and len(start) < 2]
    return [*long, *(None if then is None and not start else (*start, *(then or ()))[:2] for start in short for then in right)]


def _values(model: ClassModel, attribute: str) -> Iterator[tuple[FunctionNode, ast.expr | None]]:
    for method in model.methods.values():
        for node in ast.walk(method):
            if isinstance(node, (ast.Assign, ast.AnnAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if any(model.own.get(id(target)) == attribute for target in targets):
                    yield method, node.value


def _is_such(method: FunctionNode, value: ast.expr | None, dotted: Dotted) -> bool:
    if not isinstance(value, ast.Call) or dotted(value.func) != "torch.nn.Sequential" or len(value.args) < 2:
        return False
    first, second = (_meanings(method, item) for item in value.args[:2])
    return _all(first, lambda one: _is_relu(one, dotted)) and _all(second, lambda one: dotted(one.func) in ALLOCATING | NORMS)


def _all(calls: list[ast.expr], test: Callable[[ast.Call], bool]) -> bool:
    return bool(calls) and all(isinstance(one, ast.Call) and test(one) for one in calls)


def _meanings(method: FunctionNode, value: ast.expr) -> list[ast.expr]:
    """The expressions that a value may be: itself, or all that its name is bound to in the method."""
    if not isinstance(value, ast.Name):
        return [value]
    stores = [node for node in ast.walk(method) if isinstance(node, ast.Name) and node.id == value.id and isinstance(node.ctx, ast.Store)]
    bound = [
        node.value
        for node in ast.walk(method)
        if isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == value.id
    ]
    return bound if len(bound) == len(stores) else []


def _is_relu(call: ast.Call, dotted: Dotted) -> bool:
    flags = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "inplace")]
    return dotted(call.func) == "torch.nn.ReLU" and len(flags) == 1 and isinstance(flags[0], ast.Constant) and flags[0].value is True
