"""Finds the code of a file that CUDA alone runs, or another accelerator of torch's. Standard library only."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import lru_cache

_CUDA = re.compile(
    r"torch\.((cuda|xpu|mtia|accelerator|backends\.mps)\.(is_available|is_initialized|device_count)\(\)|cuda\._initialized)|[\w.]+\.is_(cuda|xpu|mps)"
)
LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_DEVICE = r"([\w.]+[._])?device(_type)?(\.type)?"
_OF_TYPE = re.compile(
    rf"{_DEVICE} == '(cuda|mps|xpu)(:\d+)?'|{_DEVICE} != 'cpu'"
    rf"|'(cuda|mps|xpu)' in (str\()?{_DEVICE}\)?|(str\()?{_DEVICE}\)?\.startswith\('(cuda|mps|xpu)'\)"
)
"""What asks for a device by its name."""
Holds = Callable[[ast.expr], bool]


def runs_on_cuda(tree: ast.AST, node: ast.AST) -> bool:
    """Whether a statement or expression stands in a branch that an accelerator of torch's alone takes: `if x.is_cuda:`, or `if self.flag:` where such
    branches set the flag; also after `if not torch.cuda.is_available(): return`.

    The port is one for all devices: it does what the other branch does, which was compared.
    """
    return id(node) in _nodes_on_cuda(tree)


@lru_cache(maxsize=64)
def _nodes_on_cuda(tree: ast.AST) -> frozenset[int]:
    """The ids of all nodes in such branches; the cache holds the tree, so that its ids stay its own."""
    return frozenset[int]().union(*_sides(tree, _holds_on_cuda(tree)))


def lines_on_cuda(tree: ast.AST) -> set[int]:
    """The first lines of the statements that an accelerator of torch's alone runs, as `runs_on_cuda` finds them."""
    inside = _nodes_on_cuda(tree)
    return {node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt) and id(node) in inside}


def needs_cuda(tree: ast.AST, test: ast.expr, value: bool) -> bool:
    """Whether an expression of a file has this truth value on an accelerator of torch's alone: `x.is_cuda or x.is_xpu` is true there."""
    return (_implies if value else _implies_denied)(test, _holds_on_cuda(tree))


def _holds_on_cuda(tree: ast.AST) -> Holds:
    flags = _flags(tree)
    return lambda test: _asks_cuda(test) or ast.unparse(test) in flags


@lru_cache(maxsize=64)
def _flags(tree: ast.AST) -> set[str]:
    """Names that say whether there is an accelerator of torch's: given its answer alone, or None and False but where only one sets them."""
    on_cuda = {node for inside in _sides(tree, _asks_cuda) for node in inside}
    values: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            asked = isinstance(node, ast.Assign) and (id(node) in on_cuda or _implies(node.value, _asks_cuda))
            empty = isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value in (None, False)
            kind = "asked" if asked else "empty" if empty else "other"
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for name in (one for one in ast.walk(target) if isinstance(one, (ast.Attribute, ast.Name))):
                    values.setdefault(ast.unparse(name), []).append(kind)
    return {name for name, kinds in values.items() if "asked" in kinds and "other" not in kinds}


def _sides(tree: ast.AST, holds: Holds) -> Iterator[set[int]]:
    """The ids of all statements that need what `holds` finds in a condition: those in one side of a branch, and those after a branch that leaves."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If):
            for needs, block in ((_implies(node.test, holds), node.body), (_implies_denied(node.test, holds), node.orelse)):
                if needs:
                    yield {id(inner) for one in block for inner in ast.walk(one)}
        for block in _blocks(node):
            for i, one in enumerate(block):
                if isinstance(one, ast.If) and not one.orelse and isinstance(one.body[-1], LEAVES) and _implies_denied(one.test, holds):
                    yield {id(inner) for later in block[i + 1 :] for inner in ast.walk(later)}


def _blocks(node: ast.AST) -> list[list[ast.stmt]]:
    return [block for name in ("body", "orelse", "finalbody") if isinstance(block := getattr(node, name, None), list)]


def _implies(test: ast.expr, holds: Holds) -> bool:
    """Whether an expression that is true implies what `holds` finds."""
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            return any(_implies(value, holds) for value in values)
        case ast.BoolOp(values=values):
            return all(_implies(value, holds) for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _implies_denied(operand, holds)
    return holds(test)


def _implies_denied(test: ast.expr, holds: Holds) -> bool:
    """Whether an expression that is not true implies what `holds` finds: `not a or not b` implies `a`."""
    match test:
        case ast.BoolOp(op=ast.Or(), values=values):
            return any(_implies_denied(value, holds) for value in values)
        case ast.BoolOp(values=values):
            return all(_implies_denied(value, holds) for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _implies(operand, holds)
    return False


def _asks_cuda(test: ast.expr) -> bool:
    """Whether an expression holds on an accelerator of torch's alone."""
    text = ast.unparse(test)
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Gt, ast.GtE)):
        text = ast.unparse(test.left)
    return _CUDA.fullmatch(text) is not None or _OF_TYPE.fullmatch(text) is not None
