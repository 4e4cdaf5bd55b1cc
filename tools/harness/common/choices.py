"""Calls by which data chooses between two values (`jnp.where`, `jax.lax.cond`), and which sides they take. Standard library only.

Both sides of them run once they are traced, so that counting lines shows nothing. Their conditions are noted where a file is instrumented.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

PROBE = "__migrate_agent_choice__"
"""The name of the function that notes a condition: no code of a user may call it."""
LEAST = {"where": 3, "cond": 3, "switch": 2, "select": 3}
"""Last name of the function → positional arguments that it has where its first one is the condition."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Choice(NamedTuple):
    """A call in a function of this qualified name, whose first argument is the condition."""

    node: ast.Call
    owner: str


def choices(tree: ast.Module) -> tuple[Choice, ...]:
    """All of a file, in a fixed order: their numbers are indices into it."""
    return tuple(_below(tree, "", False))


def _below(node: ast.AST, owner: str, inside: bool) -> Iterator[Choice]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.ClassDef, *FUNCTIONS)):
            yield from _below(child, f"{owner}.{child.name}" if owner else child.name, isinstance(child, FUNCTIONS))
            continue
        if inside and isinstance(child, ast.Call) and isinstance(child.func, (ast.Attribute, ast.Name)):
            name = child.func.attr if isinstance(child.func, ast.Attribute) else child.func.id
            if len(child.args) >= LEAST.get(name, 1000) and not isinstance(child.args[0], (ast.Starred, ast.List, ast.Tuple)):
                yield Choice(child, owner)
        yield from _below(child, owner, inside)


def instrument(rows: Sequence[Choice], first: int) -> None:
    """Put a probe around the condition of each; `first` is the number of the first."""
    for number, choice in enumerate(rows, first):
        condition = choice.node.args[0]
        name, constant = ast.Name(PROBE, ast.Load()), ast.Constant(number)
        call = ast.Call(name, [constant, condition], [])
        for part in (name, constant, call):
            ast.copy_location(part, condition)
        choice.node.args[0] = call


class Listener:
    """Hears of conditions while it listens."""

    def __init__(self) -> None:
        self.hear: Callable[[int, Any], None] | None = None

    def __call__(self, number: int, condition: Any) -> Any:
        """The condition, as it is."""
        if self.hear is not None:
            self.hear(number, condition)
        return condition


LISTENER = Listener()
