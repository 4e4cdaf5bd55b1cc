"""Sequences of layers that begin with a `ReLU` in place: what they are called with holds its own positive part afterwards."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FunctionNode

Dotted = Callable[[ast.expr], str]
"""An expression → the dotted name that it stands for, or ""."""
ALLOCATING = frozenset({"torch.nn.Linear", *(f"torch.nn.{kind}{n}d" for kind in ("Conv", "ConvTranspose", "BatchNorm") for n in (1, 2, 3))})
"""Layers whose result is a new tensor: nothing behind them changes what the sequence was called with."""
NORMS = frozenset({"torch.nn.utils.weight_norm", "torch.nn.utils.spectral_norm"})


def begins_with_relu(model: ClassModel, attribute: str, dotted: Dotted) -> bool:
    """Whether each value that a class gives to `self.<attribute>` is `nn.Sequential(nn.ReLU(inplace=True), nn.Conv2d(…), …)`."""
    values = list(_values(model, attribute))
    return bool(values) and all(_is_such(method, value, dotted) for method, value in values)


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
