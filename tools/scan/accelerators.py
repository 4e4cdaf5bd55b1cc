"""Finds the code of a file that CUDA alone runs, or another accelerator of torch's. Standard library only."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

_CUDA = re.compile(
    r"torch\.(cuda\.(is_available|is_initialized|device_count)\(\)|cuda\._initialized|backends\.mps\.is_available\(\))|[\w.]+\.is_cuda"
)
LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_OF_TYPE = re.compile(r"[\w.]+\.device\.type == '(cuda|mps|xpu)'|[\w.]+\.device\.type != 'cpu'")


def runs_on_cuda(tree: ast.AST, node: ast.AST) -> bool:
    """Whether a statement or expression stands in a branch that an accelerator of torch's alone takes: `if x.is_cuda:`, or `if self.flag:` where such
    branches set the flag; also after `if not torch.cuda.is_available(): return`.

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
    """The ids of all statements that need what `holds` finds in a condition: those in one side of a branch, and those after a branch that leaves."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If):
            yes, no = any(map(holds, _all_of(node.test))), any(map(holds, _denied_by(node.test)))
            if yes or no:
                yield {id(inner) for one in (node.body if yes else node.orelse) for inner in ast.walk(one)}
        for block in _blocks(node):
            for i, one in enumerate(block):
                if (
                    isinstance(one, ast.If)
                    and not one.orelse
                    and isinstance(one.body[-1], LEAVES)
                    and any(map(holds, _denied_by(one.test)))
                ):
                    yield {id(inner) for later in block[i + 1 :] for inner in ast.walk(later)}


def _blocks(node: ast.AST) -> list[list[ast.stmt]]:
    return [block for name in ("body", "orelse", "finalbody") if isinstance(block := getattr(node, name, None), list)]


def _denied_by(test: ast.expr) -> list[ast.expr]:
    """What holds where a condition does not: `a` and `b` for `not a or not b or c`."""
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else [test]
    return [part.operand for part in parts if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not)]


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
