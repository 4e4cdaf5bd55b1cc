"""Where the numbers go that a function reads out of its tensors."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeGuard

Step = ast.BinOp | ast.UnaryOp | ast.Call
"""An operation on numbers; a call is one of `max` or `min`, with one other number."""
EXTREMES = frozenset({"max", "min"})


@dataclass(frozen=True)
class Use:
    """What is computed of a number with other numbers, `number`, by way of `steps`, and what takes the result: `taker`.

    Where it is an element of a tuple, `display`, the `taker` is what takes that. A local name that takes the result is the target of its assignment, and
    what reads the name is a use of its own.
    """

    number: ast.expr
    steps: tuple[Step, ...]
    taker: ast.AST | None
    display: ast.Tuple | None = None

    def other(self) -> ast.expr | None:
        """The other side, where the taker computes with the number."""
        match self.taker:
            case ast.BinOp(left=left, right=right):
                return right if left is self.number else left
            case ast.AugAssign(target=target, value=value) if value is self.number:
                return target
        return None


def number_uses(function: ast.AST, number: ast.expr, gives_tensor: Callable[[ast.expr], bool]) -> tuple[Use, ...] | None:
    """Each use of a number, over the local names that take it; `None` where a name is bound in another way than by an assignment."""
    parents = {id(child): node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    uses: list[Use] = []
    left, names = [number], set[str]()
    while left:
        use = _use(left.pop(), parents, gives_tensor)
        match use.taker:
            case ast.Assign(targets=[ast.Name(id=name) as target], value=value) if value is use.number:
                loads = [] if name in names else _loads(function, name, parents)
                if loads is None:
                    return None
                left += loads
                names.add(name)
                use = replace(use, taker=target)
        uses.append(use)
    return tuple(uses)


def _use(node: ast.expr, parents: dict[int, ast.AST], gives_tensor: Callable[[ast.expr], bool]) -> Use:
    steps: list[Step] = []
    taker = parents.get(id(node))
    while (isinstance(taker, (ast.BinOp, ast.UnaryOp)) or is_extreme(taker)) and not gives_tensor(taker):
        steps.append(taker)
        node, taker = taker, parents.get(id(taker))
    display = taker if isinstance(taker, ast.Tuple) else None
    taker = parents.get(id(display)) if display else taker
    if isinstance(taker, ast.keyword):
        taker = parents.get(id(taker))
    return Use(node, tuple(steps), taker, display)


def is_extreme(node: ast.AST | None) -> TypeGuard[ast.Call]:
    """Whether a node is `max(a, b)`, or `min` of two."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=[_, _], keywords=[]):
            return name in EXTREMES
    return False


def _loads(function: ast.AST, name: str, parents: dict[int, ast.AST]) -> list[ast.expr] | None:
    """Where a local name is read; `None` where anything but an assignment of one value binds it."""
    for node in ast.walk(function):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return None
    uses = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name]
    stores = [node for node in uses if not isinstance(node.ctx, ast.Load)]
    plain = all(isinstance(parent := parents.get(id(node)), ast.Assign) and parent.targets == [node] for node in stores)
    return [node for node in uses if isinstance(node.ctx, ast.Load)] if plain else None
