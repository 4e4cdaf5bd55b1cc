"""Statements of an original that no port has a counterpart of: moves between devices, and questions about other processes."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from migrate_agent.tools.verify.evidence.parsed_source import bindings, dotted

_QUERY = re.compile(r"torch\.distributed\.(is_available|is_initialized|get_world_size|get_rank)")
_AVAILABLE = re.compile(r"torch\.distributed\.(is_available|is_initialized)")


def moves_device(node: ast.AST) -> bool:
    """Whether a statement is `x = x.cuda()` or `x = x.cpu()`, which changes no value and has no counterpart in a port."""
    match node:
        case ast.Assign(targets=[target], value=ast.Call(func=ast.Attribute(value=moved, attr="cuda" | "cpu"))):
            return ast.unparse(target) == ast.unparse(moved)
    return False


def asks_processes(tree: ast.Module, nodes: Sequence[ast.stmt]) -> bool:
    """Whether statements do nothing but give the answer of torch's process group, or a number where there is none.

    `return dist.get_world_size()`; `return 1` below `if not dist.is_initialized():`. One program drives all devices in JAX, so that a port knows
    the answer. What processes send each other (`dist.all_reduce(x)`) is no question.
    """
    if len(nodes) != 1 or not isinstance(nodes[0], (ast.Return, ast.Assign)) or nodes[0].value is None:
        return False
    imported = bindings(tree)
    if isinstance(nodes[0].value, ast.Constant):
        return any(
            _asks_availability(node.test, imported) for node in ast.walk(tree) if isinstance(node, ast.If) and node.body == list(nodes)
        )
    return isinstance(nodes[0].value, ast.Call) and _QUERY.fullmatch(_full_name(nodes[0].value, imported)) is not None


def _asks_availability(test: ast.expr, imported: Mapping[str, str]) -> bool:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    return isinstance(test, ast.Call) and _AVAILABLE.fullmatch(_full_name(test, imported)) is not None


def _full_name(call: ast.Call, imported: Mapping[str, str]) -> str:
    head, _, rest = dotted(call.func).partition(".")
    return ".".join(part for part in (imported.get(head, head), rest) if part)
