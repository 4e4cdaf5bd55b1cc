"""Lines that are hard to move, by kind: those that the scan found, and shapes that depend on data and writes through views, found in the syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from migrate_agent.tools.types import Inventory

_OF_FINDINGS = {
    "triton-kernel": "custom kernels",
    "cuda-kernel": "custom kernels",
    "fused-kernel": "custom kernels",
    "distributed": "distributed code",
    "storage": "mutable views",
    "hooks": "hooks",
}
"""Kind of a finding → kind of risk."""
_DATA_SHAPES = frozenset("nonzero masked_select unique unique_consecutive argwhere bincount".split())
"""Calls whose result has a shape that depends on values: under `jax.jit` such a shape must be known (https://docs.jax.dev/en/latest/errors.html)."""
_HOST_VALUES = frozenset("item tolist".split())
ADVICE = {
    "custom kernels": "a kernel of the library, plain jax.numpy, or a Pallas kernel; the launch's record is its test",
    "data-dependent shapes": "pad to a size that is known, or use the size= argument of jax.numpy; each new shape compiles again",
    "mutable views": "a write through a view changes its base in torch: it becomes a new value of both, or is left open",
    "values on the host": "a number that is read back stops the device, and cannot be read under jit: keep it an array",
    "distributed code": "one process drives all its devices: a Mesh and NamedSharding in place of processes and collectives",
    "hooks": "NNX modules have none: return what they look at",
}


class Risk(NamedTuple):
    """One line. `kind` is a key of `ADVICE`."""

    kind: str
    source: str
    line: int
    text: str


def risks(inventory: Inventory) -> tuple[Risk, ...]:
    """By kind, file and line; each line once a kind."""
    rows = [*_of_findings(inventory), *_of_syntax(inventory)]
    first = {(row.kind, row.source, row.line): row for row in reversed(rows)}
    order = list(ADVICE)
    return tuple(sorted(first.values(), key=lambda row: (order.index(row.kind), row.source, row.line)))


def _of_findings(inventory: Inventory) -> Iterator[Risk]:
    for finding in inventory.findings:
        if finding.kind in _OF_FINDINGS:
            yield Risk(_OF_FINDINGS[finding.kind], finding.source, finding.line, finding.detail.partition(": ")[0])


def _of_syntax(inventory: Inventory) -> Iterator[Risk]:
    for file in inventory.files:
        if not file.uses_torch or file.adopted or file.error:
            continue
        text = (inventory.root / file.path).read_text(encoding="utf-8-sig", errors="replace")
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if kind := _kind(node):
                yield Risk(kind, file.path, node.lineno, ast.unparse(node)[:100])  # type: ignore[attr-defined]


def _kind(node: ast.AST) -> str:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return ""
    name, owner = node.func.attr, node.func.value
    if name in _HOST_VALUES and not node.args:
        return "values on the host"
    if name in _DATA_SHAPES and not (isinstance(owner, ast.Name) and owner.id in ("np", "numpy")):
        return "data-dependent shapes"
    if name == "where" and len(node.args) == 1 and isinstance(owner, ast.Name) and owner.id == "torch":
        return "data-dependent shapes"
    # `a[2:4].add_(3)`: the part is a view, so that the write changes `a`.
    if name.endswith("_") and not name.endswith("__") and _takes_part(owner):
        return "mutable views"
    return ""


def _takes_part(owner: ast.expr) -> bool:
    """Whether an expression is a part of a tensor by a range or a number; `table[name]` is rather an entry of a dictionary."""
    parts = owner.slice.elts if isinstance(owner, ast.Subscript) and isinstance(owner.slice, ast.Tuple) else [getattr(owner, "slice", None)]
    return any(isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and type(part.value) in (int, type(...))) for part in parts)
