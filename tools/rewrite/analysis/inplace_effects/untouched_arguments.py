"""Which layers and functions leave what they are called with as it is, and give a tensor of other memory."""

from __future__ import annotations

import ast
from collections.abc import Callable

from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FileModel, FunctionNode, Repo, dotted_name
from migrate_agent.tools.rewrite.tables.registry import public_name

KINDS = ("Conv", "ConvTranspose", "BatchNorm")
ALLOCATING = frozenset({"torch.nn.Linear", *(f"torch.nn.{kind}{n}d" for kind in KINDS for n in (1, 2, 3))})
"""Layers whose result is a new tensor: nothing behind them changes what they were called with."""
WEIGHTED = frozenset(name for name in ALLOCATING if "Norm" not in name)
"""Of these, layers that always have a weight."""
NORMS = frozenset({"torch.nn.utils.weight_norm", "torch.nn.utils.spectral_norm"})
ALLOCATING_FUNCTIONS = frozenset(f"torch.nn.functional.{name}" for name in "pad linear conv1d conv2d conv3d batch_norm layer_norm".split())
SIZES = frozenset("shape dtype device ndim size dim numel".split())
"""Attributes and methods of a tensor that tell nothing of its values."""
DEEPEST = 3
Dotted = Callable[[ast.expr, ClassModel | FileModel], str]
"""An expression of a class or a file → the dotted name that it stands for, or ""."""


def assigned_values(model: ClassModel, attribute: str) -> list[tuple[FunctionNode, ast.expr]]:
    """The values that the methods of a class give to `self.<attribute>`, each with its method."""
    values = []
    for method in model.methods.values():
        for node in ast.walk(method):
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if any(model.own.get(id(target)) == attribute for target in targets):
                    values.append((method, node.value))
    return values


def static_name(node: ast.expr, file: FileModel, function: FunctionNode) -> str:
    """The dotted name that an expression in a function stands for, or "" where the function binds it itself."""
    first = node
    while isinstance(first, ast.Attribute):
        first = first.value
    if not isinstance(first, ast.Name):
        return ""
    inside = list(ast.walk(function))
    bound = {inner.id for inner in inside if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)}
    bound |= {inner.arg for inner in inside if isinstance(inner, ast.arg)}
    return "" if first.id in bound else public_name(dotted_name(node, file))


class Untouched:
    """Answers for the classes and functions of a repository."""

    def __init__(self, repo: Repo) -> None:
        self._repo = repo

    def by_layer(self, dotted: str, depth: int = 0) -> bool:
        """Whether a class of layers leaves its argument as it is, and gives other memory."""
        if dotted in ALLOCATING or dotted in NORMS:
            return True
        model = self._repo.class_of(dotted) if dotted and depth < DEEPEST else None
        forward = model.methods.get("forward") if model else None
        return model is not None and forward is not None and self._by_function(model, model.file, forward, 1, depth + 1)

    def has_weight(self, dotted: str, depth: int = 0) -> bool:
        """Whether each instance of a class of layers has a parameter."""
        if dotted in WEIGHTED:
            return True
        model = self._repo.class_of(dotted) if dotted and depth < DEEPEST else None
        constructor = model.methods.get("__init__") if model else None
        if model is None or constructor is None or any(isinstance(node, ast.Return) for node in ast.walk(constructor)):
            return False
        for statement in constructor.body:
            # Only what every path through the constructor assigns, once, is there in any case.
            match statement:
                case ast.Assign(targets=[target], value=ast.Call(func=func)) if name := model.own.get(id(target)):
                    layer = static_name(func, model.file, constructor)
                    if len(assigned_values(model, name)) == 1 and self.has_weight(layer, depth + 1):
                        return True
        return False

    def _by_function(self, model: ClassModel | None, file: FileModel, function: FunctionNode, position: int, depth: int) -> bool:
        """Whether a function leaves the argument of a position as it is, and gives nothing that shares its memory."""
        parameters = [*function.args.posonlyargs, *function.args.args]
        if position >= len(parameters) or function.decorator_list:
            return False
        name = parameters[position].arg
        for statement in function.body:
            loads = {id(node) for node in ast.walk(statement) if isinstance(node, ast.Name) and node.id == name}
            if not loads:
                continue
            if not isinstance(statement, (ast.Assign, ast.Return, ast.Expr)):
                return False
            stored = [target for target in statement.targets if isinstance(target, ast.Name)] if isinstance(statement, ast.Assign) else []
            rebound = {id(target) for target in stored if target.id == name}
            harmless = {id(node) for node in self._harmless(model, file, function, statement, depth)}
            if not loads - rebound <= harmless:
                return False
            if rebound:
                return True
        return True

    def _harmless(
        self, model: ClassModel | None, file: FileModel, function: FunctionNode, statement: ast.stmt, depth: int
    ) -> list[ast.expr]:
        """The expressions of a statement that are only measured, or handed to what leaves them as they are."""
        harmless: list[ast.expr] = []
        for node in ast.walk(statement):
            match node:
                case ast.Attribute(value=value, attr=attr) if attr in SIZES:
                    harmless.append(value)
                case ast.Call(func=func, args=args):
                    harmless += [value for position, value in enumerate(args) if self._leaves(model, file, function, func, position, depth)]
        return harmless

    def _leaves(self, model: ClassModel | None, file: FileModel, function: FunctionNode, func: ast.expr, position: int, depth: int) -> bool:
        """Whether a call leaves its argument of a position as it is, and gives other memory."""
        if model is not None and (name := model.own.get(id(func))):
            values = assigned_values(model, name) if position == 0 and name not in model.methods else []
            return bool(values) and all(
                isinstance(value, ast.Call) and self.by_layer(static_name(value.func, file, method), depth) for method, value in values
            )
        dotted = static_name(func, file, function)
        if dotted in ALLOCATING_FUNCTIONS:
            return position == 0
        definition = self._repo.resolve(dotted) if dotted and depth < DEEPEST else None
        called = definition[0].functions.get(definition[1]) if definition else None
        return definition is not None and called is not None and self._by_function(None, definition[0], called, position, depth + 1)
