"""Finds the code of a file that CUDA alone runs, or another accelerator of torch's. Standard library only."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

_CUDA = re.compile(
    r"torch\.(cuda\.(is_available|is_initialized|device_count)\(\)|cuda\._initialized|backends\.mps\.is_available\(\))|[\w.]+\.is_cuda"
)
_OF_TYPE = re.compile(r"[\w.]+\.device\.type == '(cuda|mps|xpu)'|[\w.]+\.device\.type != 'cpu'")


def runs_on_cuda(tree: ast.AST, node: ast.AST) -> bool:
    """Whether a statement or expression stands in a branch that an accelerator of torch's alone takes: `if x.is_cuda:`, or `if self.flag:` where such
    branches set the flag.


    The port is one for all devices: it does what the other branch does, which was compared.
    """
    flags = _flags(tree)
    return any(id(node) in inside for inside in _sides(tree, lambda test: _asks_cuda(test) or ast.unparse(test) in flags))


def _flags(tree: ast.AST) -> set[str]:
    """Names that say whether there is an accelerator of torch's: given its answer alone, or None and False but where only one sets them."""
    on_cuda = {node for inside in _sides(tree, _asks_cuda) for node in inside}
    values: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            asked = isinstance(node, ast.Assign) and (id(node) in on_cuda or _implies_cuda(node.value))
            empty = isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value in (None, False)
            kind = "asked" if asked else "empty" if empty else "other"
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for name in (one for one in ast.walk(target) if isinstance(one, (ast.Attribute, ast.Name))):
                    values.setdefault(ast.unparse(name), []).append(kind)
    return {name for name, kinds in values.items() if "asked" in kinds and "other" not in kinds}


def _sides(tree: ast.AST, holds: Callable[[ast.expr], bool]) -> Iterator[set[int]]:
    """The ids of all statements in each side of a branch that needs what `holds` finds in its condition."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If):
            negated = isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not)
            test = node.test.operand if isinstance(node.test, ast.UnaryOp) and negated else node.test
            if any(map(holds, [test] if negated else _all_of(test))):
                yield {id(inner) for one in (node.orelse if negated else node.body) for inner in ast.walk(one)}


def _all_of(test: ast.expr) -> list[ast.expr]:
    """The parts of a condition that all have to hold."""
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def _implies_cuda(value: ast.expr) -> bool:
    return any(map(_asks_cuda, _all_of(value)))


def _asks_cuda(test: ast.expr) -> bool:
    """Whether an expression holds on an accelerator of torch's alone."""
    text = ast.unparse(test)
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Gt, ast.GtE)):
        text = ast.unparse(test.left)
    return _CUDA.fullmatch(text) is not None or _OF_TYPE.fullmatch(text) is not None
