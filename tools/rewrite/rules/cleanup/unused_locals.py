"""Local names that nothing reads any more, since rewriting dropped what read them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from migrate_agent.tools.rewrite.analysis.unpacking import drop_elements, matching_index, star_flags
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.scan.nodes import walk

PURE = frozenset(
    "jnp jax lax np math len int float bool str type tuple list min max sum isinstance hasattr getattr next iter parameters".split()
)
"""Names whose calls (and those of what they hold) change nothing."""


class DropUnusedLocals(Rule):
    """Remove local names that nothing reads any more: `device = default(device, None)` → nothing, where only device arguments read it.

    Declines for what the source itself never reads, where computing the value may change something, and in
    functions that ask for their names (`locals()`).
    """

    KEEP = ("def f(x):\n    y = x + 1\n    return x\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor, n: int):\n    place = 'cuda' if n > 3 else 'cpu'\n    return torch.zeros(n, device=place) + x\n",
            "def f(x: jax.Array, n: int):\n    return jnp.zeros(n) + x\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    b, *_, on_gpu = *x.shape, x.is_cuda\n"
            "    return torch.zeros(b, device='cuda' if on_gpu else 'cpu')\n",
            "def f(x: jax.Array):\n    b, *_ = x.shape\n    return jnp.zeros(b)\n",
        ),
    )

    def leave_FunctionDef(self, original: cst.FunctionDef, updated: cst.FunctionDef) -> cst.FunctionDef | None:
        if len(self.context.functions) != 1:
            return None
        before = _names_read(self._source_tree(original))
        result = updated
        # A removed assignment may have been the only read of another name.
        for _ in range(3):
            tree = _tree(result) if before else None
            # What the source itself never reads it has for reasons of its own.
            dead = (before - _names_read(tree)) & _removable(tree) if tree else set()
            cleaned = result.visit(_Drop(dead)) if dead else result
            if cleaned is result or not isinstance(cleaned, cst.FunctionDef):
                break
            result = cleaned
        return None if result is updated else result

    def _source_tree(self, function: cst.FunctionDef) -> ast.AST:
        line = self.context.span(function.name).line
        functions = (self.context.cls.methods if self.context.cls else self.context.file.functions).values()
        return next((node for node in functions if node.lineno == line), None) or _tree(function)


def _tree(node: cst.FunctionDef) -> ast.AST:
    return ast.parse(cst.Module([node.with_changes(leading_lines=[])]).code)


def _names_read(tree: ast.AST) -> set[str]:
    """Names that a function reads; nothing where it may read them in other ways."""
    names: set[str] = set()
    for child in walk(tree):
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load):
            names.add(child.id)
        elif isinstance(child, (ast.Nonlocal, ast.Global)):
            names |= set(child.names)
    return set() if names & {"locals", "eval", "exec", "vars"} else names


def _removable(tree: ast.AST) -> set[str]:
    """Names that the function only binds by plain assignments of values whose computation changes nothing."""
    pairs = [pair for child in walk(tree) if isinstance(child, ast.Assign) for pair in _bound_values(child)]
    bound = {id(target) for target, _ in pairs}
    other = {target.id for target, value in pairs if not _is_pure(value)}
    for child in walk(tree):
        if isinstance(child, ast.Name) and isinstance(child.ctx, (ast.Store, ast.Del)) and id(child) not in bound:
            other.add(child.id)
    return {target.id for target, _ in pairs} - other


def _bound_values(node: ast.Assign) -> Iterator[tuple[ast.Name, ast.expr]]:
    """The names that an assignment binds to one value each, which stands there: of `a, *_, b = *x.shape, 3` that is `b`."""
    target = node.targets[0]
    if len(node.targets) > 1:
        return
    if isinstance(target, ast.Name):
        yield target, node.value
    elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
        starred = [isinstance(e, ast.Starred) for e in target.elts], [isinstance(e, ast.Starred) for e in node.value.elts]
        for i, value in enumerate(node.value.elts):
            position = matching_index(*starred, i)
            if position is not None and isinstance(name := target.elts[position], ast.Name):
                yield name, value


def _is_pure(value: ast.expr) -> bool:
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
        target, value = original_node.targets[0].target, original_node.value
        if len(original_node.targets) > 1:
            return updated_node
        if isinstance(target, cst.Name) and target.value in self.names:
            return cst.RemoveFromParent()
        if not isinstance(target, cst.Tuple) or not isinstance(value, cst.Tuple):
            return updated_node
        positions = [i for i, e in enumerate(target.elements) if isinstance(e.value, cst.Name) and e.value.value in self.names]
        starred = star_flags(value), star_flags(target)
        pairs = [
            (position, i) for position in positions if (i := matching_index(*starred, position)) is not None and not starred[1][position]
        ]
        if len(pairs) == len(target.elements):
            return cst.RemoveFromParent()
        return drop_elements(updated_node, [position for position, _ in pairs], [i for _, i in pairs])

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.IndentedBlock:
        if updated_node.body or not original_node.body:
            return updated_node
        return updated_node.with_changes(body=[cst.parse_statement("pass")])

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> cst.If | cst.RemovalSentinel:
        """A test whose only arm is empty goes, where asking changes nothing."""
        emptied = _text(updated_node.body) == "pass" != _text(original_node.body)
        pure = _is_pure(ast.parse(f"({_text(updated_node.test)}\n)", mode="eval").body)
        return cst.RemoveFromParent() if emptied and pure and updated_node.orelse is None else updated_node


def _text(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node).strip()
