"""The parameters of the helpers, as their texts give them."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from migrate_agent.tools.rewrite.tables.helpers import symbols

LAZY = (ast.FunctionDef, ast.Lambda, ast.GeneratorExp)
"""What reads names only when it runs."""


@dataclass(frozen=True)
class Signature:
    """The parameters of a function or constructor, `self` left out.

    `positional`: names in order. `defaults`: parameter → text of its default, where that is a literal. `free`: parameters that can be replaced by a
    value, `free_parameters` of the whole text. `operands`: those that arithmetic is done with.
    """

    positional: tuple[str, ...]
    names: frozenset[str]
    defaults: Mapping[str, str]
    free: frozenset[str]
    operands: frozenset[str] = frozenset()

    def takes(self, parameter: str, text: str) -> bool:
        """Whether a literal reads well in the place of a parameter: `x * 1.0 + 0` does not."""
        return not (parameter in self.operands and text in ("0", "1", "0.0", "1.0"))


def literal(node: ast.AST | None) -> str | None:
    """The text of a literal: a constant, a signed number or `()`; None for anything else."""
    if isinstance(node, ast.Constant) and not isinstance(node.value, (bytes, type(...))):
        return ast.unparse(node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return ast.unparse(node)
    return "()" if isinstance(node, ast.Tuple) and not node.elts else None


@cache
def definition(name: str) -> ast.FunctionDef | ast.ClassDef | None:
    """The definition of a helper, where it is a function or class."""
    node = ast.parse(symbols()[name].text).body[-1] if name in symbols() else None
    return node if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else None


@cache
def bases(name: str) -> tuple[str, ...]:
    """The helpers that a class inherits from directly."""
    node = definition(name)
    plain = (base.value if isinstance(base, ast.Subscript) else base for base in getattr(node, "bases", []))
    return tuple(base.id for base in plain if isinstance(base, ast.Name) and base.id in symbols())


@cache
def provider(name: str) -> str:
    """The helper whose parameters a call of `name` passes: the function, or the class that has the constructor. "" where no helper has it."""
    node = definition(name)
    if isinstance(node, ast.ClassDef):
        return name if constructor(node) is not None else next(filter(None, map(provider, bases(name))), "")
    return name if node is not None else ""


def constructor(node: ast.ClassDef) -> ast.FunctionDef | None:
    """The `__init__` of a class."""
    return next((part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"), None)


@cache
def signature(name: str) -> Signature:
    """What a helper takes. Nothing of a decorated one may change, since its decorator may name parameters."""
    node = definition(name)
    function = constructor(node) if isinstance(node, ast.ClassDef) else node
    if node is None or function is None or node.decorator_list or function.decorator_list:
        return Signature((), frozenset(), {}, frozenset())
    listed = [*function.args.posonlyargs, *function.args.args]
    positional = [argument.arg for argument in listed][isinstance(node, ast.ClassDef) :]
    keywords = [argument.arg for argument in function.args.kwonlyargs]
    last = [argument.arg for argument in listed][len(listed) - len(function.args.defaults) :]
    defaults = dict(zip(last, map(literal, function.args.defaults), strict=True))
    defaults |= dict(zip(keywords, map(literal, function.args.kw_defaults), strict=True))
    names = frozenset(positional) | frozenset(keywords)
    return Signature(
        tuple(positional),
        names,
        {key: text for key, text in defaults.items() if text is not None},
        free_parameters(function),
        _operands(function),
    )


def _operands(function: ast.FunctionDef) -> frozenset[str]:
    sums = [node for node in ast.walk(function) if isinstance(node, ast.BinOp)]
    return frozenset(side.id for node in sums for side in (node.left, node.right) if isinstance(side, ast.Name))


def free_parameters(function: ast.FunctionDef) -> frozenset[str]:
    """The parameters that can be replaced by a value: nothing binds their name again but assignments in the function's own block."""
    names = {argument.arg for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    bound: set[str] = set()
    later: set[str] = set()
    for statement in function.body:
        inner = list(ast.walk(statement))
        later |= {part.id for node in inner if isinstance(node, LAZY) for part in ast.walk(node) if isinstance(part, ast.Name)}
        stored = [node.id for node in inner if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)]
        bound |= {name for name in stored if name != assigned_name(statement) or name in later}
        bound |= {node.arg for node in inner if isinstance(node, ast.arg)}
    return frozenset(names - bound)


def assigned_name(statement: ast.stmt) -> str:
    """The name of `name = …`."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return ""
