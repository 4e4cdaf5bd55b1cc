"""What a constructor uses a parameter for: the arguments of torch's layers that it is handed to, in the class or in those that it constructs."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

from migrate_agent.tools.record.guessing.choices import nodes_of, value_of_name
from migrate_agent.tools.record.guessing.configs import is_any
from migrate_agent.tools.record.guessing.reads import arguments

DEPTH = 3
"""How many constructors a parameter is followed into."""
DEPTHS = "depth"
"""What a number of turns of a loop is called, though no layer of torch takes it."""


def roles(constructed: Callable[..., Any], name: str, depth: int = DEPTH) -> tuple[str, ...]:
    """Names of torch's arguments that a parameter of a class becomes, in the code's order: `kernel_size` of `k` in `nn.Conv2d(d, d, int(k))`."""
    return tuple(dict.fromkeys(_roles(constructed, name, depth)))


def is_power(cls: Any, name: str) -> bool:
    """Whether a class raises to a parameter, or takes a norm of that order: `x.pow(self.p)`, `F.normalize(x, p=p)`."""
    return any(is_any(power, (name,)) for node in nodes_of(cls) for power in _powers(node))


def _powers(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.BinOp(op=ast.Pow(), right=power):
            yield power
        case ast.Call(func=ast.Attribute(attr="pow"), args=[*_, power]):
            yield power
        case ast.Call(func=ast.Attribute(attr="norm" | "normalize" | "cdist" | "PairwiseDistance"), keywords=keywords):
            yield from (keyword.value for keyword in keywords if keyword.arg == "p")


def _roles(constructed: Callable[..., Any], name: str, depth: int) -> Iterator[str]:
    names = vars(sys.modules.get(constructed.__module__, ast)) if getattr(constructed, "__module__", "") else {}
    for node in nodes_of(getattr(constructed, "__init__", constructed)):
        if _counts(node, name):
            yield DEPTHS
        called = value_of_name(node.func, names) if isinstance(node, ast.Call) else None
        if not isinstance(node, ast.Call) or not inspect.isclass(called):
            continue
        for argument in (taken for taken, value in arguments(called, _plain(node)) if is_any(value, (name,))):
            if called.__module__.startswith("torch.nn."):
                yield argument
            elif depth > 1:
                yield from _roles(called, argument, depth - 1)


def _counts(node: ast.AST, name: str) -> bool:
    """Whether a loop of a constructor runs as often as a parameter says: `[Block(d) for _ in range(n)]`."""
    match node:
        case ast.For(iter=source) | ast.comprehension(iter=source):
            return (
                isinstance(source, ast.Call)
                and isinstance(source.func, ast.Name)
                and source.func.id == "range"
                and any(is_any(argument, (name,)) for argument in source.args[-1:])
            )
    return False


def _plain(call: ast.Call) -> ast.Call:
    """The call with `int(x)` as `x`."""
    keywords = [ast.keyword(keyword.arg, _number(keyword.value)) for keyword in call.keywords]
    return ast.Call(call.func, [_number(argument) for argument in call.args], keywords)


def _number(node: ast.expr) -> ast.expr:
    match node:
        case ast.Call(func=ast.Name(id="int" | "float" | "bool"), args=[inner]):
            return inner
    return node
