"""Branches of a training step that a configuration chooses: the one that the recorded run took stays, and an error stands for the others.

for x, y in loader:                             if args.fused:
    …                                               raise NotImplementedError("not migrated, since no run came here: args.fused")
    if args.fused:                              for x, y in loader:
        scaler.scale(loss).backward()    →          …
    else:                                           loss.backward()
        loss.backward()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

import libcst as cst

from migrate_agent.tools.programs.rewrite.core import body
from migrate_agent.tools.programs.rewrite.names import code, parse, text_of
from migrate_agent.tools.programs.rewrite.spans import Positions, ScriptPass, span_of
from migrate_agent.tools.programs.rewrite.unreached import MESSAGE
from migrate_agent.tools.types import Observed, Span

PARTS = frozenset({"backward", "step", "zero_grad", "unscale_"})
"""Methods that make a training step."""


class TakenBranches(ScriptPass):
    """One pass over a script."""

    def __init__(self, module: cst.Module, positions: Positions, observed: Mapping[Span, Observed]) -> None:
        super().__init__()
        self._positions = positions
        self._ran = {line for span in observed for line in range(span.line, span.end_line + 1)}
        self._fixed = _Fixed(ast.parse(text_of(module)))
        self._loops = [0]
        self._guards: list[list[cst.BaseStatement]] = [[]]

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        """Loops and errors are those of one function."""
        self._loops.append(0)
        self._guards.append([])

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        """Loops and errors are those of one function."""
        self._loops.pop()
        self._guards.pop()
        return updated_node

    def visit_For(self, node: cst.For) -> None:
        """Count loops."""
        self._loops[-1] += 1

    def visit_While(self, node: cst.While) -> None:
        """Count loops."""
        self._loops[-1] += 1

    def leave_For(self, original_node: cst.For, updated_node: cst.For) -> Any:
        """The errors stand before the outermost loop."""
        return self._after_loop(updated_node)

    def leave_While(self, original_node: cst.While, updated_node: cst.While) -> Any:
        """The errors stand before the outermost loop."""
        return self._after_loop(updated_node)

    def _after_loop(self, loop: cst.For | cst.While) -> Any:
        self._loops[-1] -= 1
        guards = self._guards[-1]
        if self._loops[-1] or not guards:
            return loop
        self._guards[-1] = []
        return cst.FlattenSentinel([*guards, loop])

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> Any:
        """The branch that ran takes the place of the choice."""
        tests, blocks = _branches(original_node)
        ran = [number for number, block in enumerate(blocks) if self._runs(block)]
        if len(ran) != 1 or not any(map(_is_part, blocks)) or not all(map(self._fixed.holds, tests)):
            return updated_node
        (number,) = ran
        conditions = [f"({code(test)})" if isinstance(test, cst.BooleanOperation) else code(test) for test in tests]
        others = conditions[:number] + ([f"not {conditions[number]}"] if number < len(tests) else [])
        self._guard(" or ".join(others) if len(others) > 1 else others[0].removeprefix("(").removesuffix(")") if number else others[0])
        _, new = _branches(updated_node)
        lines: list[Any] = list(body(new[number]))
        if lines and hasattr(lines[0], "leading_lines"):
            lines[0] = lines[0].with_changes(leading_lines=[*updated_node.leading_lines, *lines[0].leading_lines])
            self.origin.setdefault(lines[0], body(blocks[number])[0])
        return cst.FlattenSentinel(lines)

    def _runs(self, block: cst.CSTNode) -> bool:
        spans = [span_of(self._positions[statement]) for statement in body(block)]
        return any(self._ran & set(range(span.line, span.end_line + 1)) for span in spans)

    def _guard(self, condition: str) -> None:
        guard = cst.parse_statement(f"if {condition}:\n    raise NotImplementedError({f'{MESSAGE}: {condition}'!r})")
        if all(code(one) != code(guard) for one in self._guards[-1]):
            self._guards[-1].append(guard)


def _branches(choice: cst.If) -> tuple[list[cst.BaseExpression], list[cst.CSTNode]]:
    """The conditions and the blocks of a choice with an `else`; of any other nothing."""
    tests, blocks = [choice.test], [choice.body]
    part = choice.orelse
    while isinstance(part, cst.If):
        tests.append(part.test)
        blocks.append(part.body)
        part = part.orelse
    return (tests, [*blocks, part.body]) if part is not None else ([], [])


def _is_part(block: cst.CSTNode) -> bool:
    """Whether a block calls what a training step is made of, and loops over nothing but parameters."""
    nodes = [node for statement in body(block) for node in ast.walk(parse(statement))]
    calls = [node.func.attr for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    gradients = any(isinstance(node, ast.Attribute) and node.attr == "grad" for node in nodes)
    loops = [node for node in nodes if isinstance(node, (ast.For, ast.While)) and "parameters()" not in ast.unparse(node)]
    return not loops and (gradients or bool(PARTS & set(calls)))


class _Fixed:
    """What a script gives one value before it trains: options, and names that are bound once, outside of loops."""

    def __init__(self, tree: ast.Module) -> None:
        self._bound: dict[str, int] = {}
        self._varying: set[str] = set()
        for name, inside in _bindings(tree, False):
            self._bound[name] = self._bound.get(name, 0) + 1
            self._varying |= {name} if inside else set()
        self._varying |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}

    def holds(self, test: cst.BaseExpression) -> bool:
        """Whether a condition says the same whenever it is asked."""
        tree = ast.parse(code(test), mode="eval")
        chains = [node for node in ast.walk(tree) if isinstance(node, (ast.Name, ast.Attribute))]
        names = [ast.unparse(node) for node in chains]
        plain = not any(isinstance(node, (ast.Call, ast.Subscript, ast.NamedExpr)) for node in ast.walk(tree))
        roots = [node.id for node in chains if isinstance(node, ast.Name) and node.id != "self"]
        unchanged = all(name not in self._varying and self._bound.get(name, 0) <= 1 for name in names)
        return plain and unchanged and all(self._bound.get(root, 0) == 1 for root in roots)


def _bindings(node: ast.AST, inside: bool) -> Iterator[tuple[str, bool]]:
    """Each name, or chain of attributes, that is bound somewhere, and whether that is in a loop."""
    for child in ast.iter_child_nodes(node):
        loop = inside or isinstance(child, (ast.For, ast.While))
        if isinstance(child, (ast.Name, ast.Attribute)) and isinstance(child.ctx, ast.Store):
            yield ast.unparse(child), loop
        yield from _bindings(child, loop)
