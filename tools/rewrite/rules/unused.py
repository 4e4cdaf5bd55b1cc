"""Local names that nothing reads any more, since rewriting dropped what read them."""

from __future__ import annotations

import ast

import libcst as cst

from migrate_agent.tools.rewrite.engine import Rule

PURE = frozenset(
    "jnp jax lax np math len int float bool str tuple list min max sum isinstance hasattr getattr next iter parameters".split()
)
"""Names whose calls (and those of what they hold) change nothing."""


class DropUnusedLocals(Rule):
    """`device = default(device, None)`, where only device arguments read it, goes. What the source itself never reads stays as it is.

    Declines where computing the value may change something, and in functions that ask for their names (`locals()`).
    """

    ORDER = 97
    KEEP = ("def f(x):\n    y = x + 1\n    return x\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor, n: int):\n    place = 'cuda' if n > 3 else 'cpu'\n    return torch.zeros(n, device=place) + x\n",
            "def f(x: jax.Array, n: int):\n    return jnp.zeros(n) + x\n",
        ),
    )

    def leave_FunctionDef(self, original: cst.FunctionDef, updated: cst.FunctionDef) -> cst.FunctionDef | None:
        if len(self.context.functions) != 1:
            return None
        before = _reads(original)
        result = updated
        for _ in range(3):
            dead = before - _reads(result) if before else set()
            cleaned = result.visit(_Drop(dead & _removable(result))) if dead else result
            if cleaned is result or not isinstance(cleaned, cst.FunctionDef):
                break
            result = cleaned
        return None if result is updated else result


def _tree(node: cst.FunctionDef) -> ast.AST:
    return ast.parse(cst.Module([node.with_changes(leading_lines=[])]).code)


def _reads(node: cst.FunctionDef) -> set[str]:
    """Names that a function reads; nothing where it may read them in other ways."""
    names: set[str] = set()
    for child in ast.walk(_tree(node)):
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load):
            names.add(child.id)
        elif isinstance(child, (ast.Nonlocal, ast.Global)):
            names |= set(child.names)
    return set() if names & {"locals", "eval", "exec", "vars"} else names


def _removable(node: cst.FunctionDef) -> set[str]:
    """Names that the function only binds by plain assignments of values whose computation changes nothing."""
    plain: set[str] = set()
    other: set[str] = set()
    tree = _tree(node)
    for child in ast.walk(tree):
        targets = child.targets if isinstance(child, ast.Assign) else []
        if len(targets) == 1 and isinstance(targets[0], ast.Name):
            (plain if _pure(child.value) else other).add(targets[0].id)  # type: ignore[attr-defined]
            targets[0].ctx = ast.Load()
    other |= {child.id for child in ast.walk(tree) if isinstance(child, ast.Name) and isinstance(child.ctx, (ast.Store, ast.Del))}
    return plain - other


def _pure(value: ast.expr) -> bool:
    for child in ast.walk(value):
        if isinstance(child, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
            return False
        if isinstance(child, ast.Call):
            function: ast.expr = child.func
            while isinstance(function, ast.Attribute):
                function = function.value
            if not isinstance(function, ast.Name) or function.id not in PURE:
                return False
    return True


class _Drop(cst.CSTTransformer):
    """Removes the plain assignments to some names."""

    def __init__(self, names: set[str]) -> None:
        super().__init__()
        self.names = names

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign | cst.RemovalSentinel:
        target = original_node.targets[0].target
        if len(original_node.targets) == 1 and isinstance(target, cst.Name) and target.value in self.names:
            return cst.RemoveFromParent()
        return updated_node

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.IndentedBlock:
        if updated_node.body or not original_node.body:
            return updated_node
        return updated_node.with_changes(body=[cst.parse_statement("pass")])

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> cst.If | cst.RemovalSentinel:
        """A test whose only arm is empty goes, where asking changes nothing."""
        emptied = _text(updated_node.body) == "pass" != _text(original_node.body)
        pure = _pure(ast.parse(_text(updated_node.test), mode="eval").body)
        return cst.RemoveFromParent() if emptied and pure and updated_node.orelse is None else updated_node


def _text(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node).strip()
