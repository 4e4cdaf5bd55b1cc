"""Samples of data sets that are rows of arrays, which are read from the host's memory.

return self.x[i], self.y[i]   →   return np.asarray(self.x)[i], np.asarray(self.y)[i]

Each row of a device's array would be a program of its own, and the loader makes a batch of NumPy arrays anyway.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

import libcst as cst

from migrate_agent.tools.programs.rewrite.core import body
from migrate_agent.tools.programs.rewrite.names import Imports, code

DATASET = "torch.utils.data.Dataset"


def numpy_name(imports: Imports) -> str:
    """What a script calls NumPy, or "" where the usual name means something else in it."""
    own = [name for name, dotted in imports.dotted.items() if dotted == "numpy"]
    return next(iter([*own, *({"np"} - imports.dotted.keys())]), "")


def sampled_arrays(module: cst.Module, imports: Imports, tensors: Collection[cst.CSTNode]) -> frozenset[cst.CSTNode]:
    """The attributes of data sets of which a sample returns rows, of those that were seen to be tensors."""
    # A function of the script's own may change the samples that it makes a batch of.
    if "collate_fn" in code(module) or not numpy_name(imports):
        return frozenset()
    own = _read_by_script(module)
    classes = [s for s in module.body if isinstance(s, cst.ClassDef) and any(_is_dataset(base.value, imports) for base in s.bases)]
    parts = [part for cls in classes if cls.name.value not in own for part in _samples(cls)]
    return frozenset(part.value for part in parts if _is_row(part) and part.value in tensors)


def from_host(row: cst.Subscript, imports: Imports) -> cst.Subscript:
    """`self.x[i]` → `np.asarray(self.x)[i]`."""
    return row.with_changes(value=cst.Call(cst.parse_expression(f"{numpy_name(imports)}.asarray"), [cst.Arg(row.value)]))


def _read_by_script(module: cst.Module) -> set[str]:
    """Functions whose results the script takes samples of by itself, by a subscript or a loop: it computes with these by the rules of a device."""
    tree = ast.parse(code(module))
    read: set[str] = set()
    made: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript):
            read.add(ast.unparse(node.value))
        elif isinstance(node, (ast.For, ast.comprehension)):
            read |= {ast.unparse(part) for part in ast.walk(node.iter) if isinstance(part, (ast.Name, ast.Attribute, ast.Call))}
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            made.setdefault(ast.unparse(node.value.func), set()).update(ast.unparse(target) for target in node.targets)
    calls = {node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node) in read}
    return {name for name, targets in made.items() if targets & read} | {ast.unparse(call.func) for call in calls}


def _is_dataset(base: cst.BaseExpression, imports: Imports) -> bool:
    whole = base.value if isinstance(base, cst.Subscript) else base
    return isinstance(whole, (cst.Name, cst.Attribute)) and imports.of(whole) in (DATASET, "torch.utils.data.dataset.Dataset")


def _samples(cls: cst.ClassDef) -> Iterator[cst.Subscript]:
    """What `__getitem__` returns by subscripts."""
    method = next((s for s in body(cls.body) if isinstance(s, cst.FunctionDef) and s.name.value == "__getitem__"), None)
    for statement in body(method.body) if method is not None else ():
        small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
        if isinstance(small, cst.Return):
            parts = [e.value for e in small.value.elements] if isinstance(small.value, (cst.Tuple, cst.List)) else [small.value]
            yield from (part for part in parts if isinstance(part, cst.Subscript))


def _is_row(part: cst.Subscript) -> bool:
    return isinstance(part.value, cst.Attribute) and code(part.value.value) == "self"
