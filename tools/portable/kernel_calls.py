"""Finds the calls in a rewrite that a kernel of the library can replace, and rewrites them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath

from migrate_agent.tools.portable.describe import HELPERS
from migrate_agent.tools.rewrite.assemble.formatting import format_python
from migrate_agent.tools.rewrite.tables import helpers as vendoring

PLAIN = {"scaled_dot_product_attention": "fused_scaled_dot_product_attention"}
"""Helpers in plain JAX, and the functions of the same arguments that have a kernel."""
AUTO = 'implementation="auto"'


@cache
def functions() -> frozenset[str]:
    """The library's functions with a parameter `implementation`, by which a call selects the kernel."""
    return frozenset(name for name, symbol in vendoring.symbols().items() if _takes_implementation(symbol.text))


def _takes_implementation(text: str) -> bool:
    node = ast.parse(text).body[-1]
    if isinstance(node, ast.ClassDef):
        node = next((method for method in node.body if isinstance(method, ast.FunctionDef) and method.name == "__init__"), node)
    return isinstance(node, ast.FunctionDef) and "implementation" in {argument.arg for argument in node.args.kwonlyargs}


@dataclass(frozen=True)
class KernelCall:
    """A call at `line` of `file` that computes what the library's `kernel` computes, in plain JAX; `end` is where its closing parenthesis stands."""

    file: str
    line: int
    kernel: str
    start: int
    end: int


def kernel_calls(files: Mapping[str, str]) -> list[KernelCall]:
    """All calls in these files of a rewrite that do not pass `implementation`, helpers left out."""
    return [call for path, text in sorted(files.items()) if PurePosixPath(path).name not in HELPERS for call in _calls(path, text)]


def _calls(path: str, text: str) -> Iterator[KernelCall]:
    tree = ast.parse(text)
    starts = [0]
    for line in text.splitlines(keepends=True):
        # ast's column offsets count bytes of UTF-8.
        starts.append(starts[-1] + len(line.encode()))
    helpers = {alias.asname or alias.name for node in ast.walk(tree) for alias in _from_helpers(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or any(keyword.arg in ("implementation", None) for keyword in node.keywords):
            continue
        if isinstance(node.func, ast.Attribute):
            base, name = node.func.value, node.func.attr
            from_helpers = isinstance(base, ast.Name) and base.id in helpers
        else:
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            from_helpers = name in helpers
        kernel = PLAIN.get(name, name)
        if from_helpers and kernel in functions() and node.func.end_col_offset is not None:
            name_end = starts[(node.func.end_lineno or 1) - 1] + node.func.end_col_offset
            yield KernelCall(
                path, node.lineno, kernel, name_end - len(name), starts[(node.end_lineno or 1) - 1] + (node.end_col_offset or 1) - 1
            )


def _from_helpers(node: ast.AST) -> Sequence[ast.alias]:
    """What a statement binds of the helpers' file, or that file itself."""
    stems = {PurePosixPath(name).stem for name in HELPERS}
    if isinstance(node, ast.ImportFrom):
        if (node.module or "").rpartition(".")[2] in stems:
            return node.names
        return [alias for alias in node.names if alias.name in stems]
    return [alias for alias in node.names if alias.name in stems] if isinstance(node, ast.Import) else []


def with_kernels(files: Mapping[str, str], chosen: Sequence[KernelCall]) -> dict[str, str]:
    """The files that change (helpers included) when these calls use their kernels."""
    changed: dict[str, str] = {}
    for path in sorted({call.file for call in chosen}):
        data = files[path].encode()
        here = [call for call in chosen if call.file == path]
        edits = [edit for call in here for edit in _call_edits(call, data)]
        # From the end, so that earlier offsets stay valid.
        for start, end, new in sorted(edits, reverse=True):
            data = data[:start] + new.encode() + data[end:]
        changed[path] = _with_imports(data.decode(), {call.kernel for call in here} & set(PLAIN.values()))
    helpers = [path for path in files if PurePosixPath(path).name in HELPERS]
    for path in helpers:
        defined = {name for node in ast.parse(files[path]).body for name in _defined(node)} & vendoring.symbols().keys()
        lacking = {call.kernel for call in chosen} - defined
        if lacking:
            changed[path] = vendoring.render(sorted(defined | lacking), vendoring.is_plain(files[path]))
    return format_python(changed)


def _call_edits(call: KernelCall, data: bytes) -> Iterator[tuple[int, int, str]]:
    """Start, end and new text of the callee's name, and of the argument."""
    plain = next((old for old, new in PLAIN.items() if new == call.kernel), "")
    position = call.start
    if plain and data[position : position + len(plain)] == plain.encode():
        yield position, position + len(plain), call.kernel
    before = data[: call.end].rstrip()
    yield call.end, call.end, AUTO if before.endswith((b"(", b",")) else f", {AUTO}"


def _with_imports(text: str, names: set[str]) -> str:
    """The text with these names imported beside the helper that they stand for."""
    tree = ast.parse(text)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    lines = text.splitlines(keepends=True)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and _from_helpers(node) is node.names:
            aliases = {alias.name: alias.asname for alias in node.names}
            added = {new for old, new in PLAIN.items() if new in names and old in aliases and new in used}
            remaining = {name: asname for name, asname in aliases.items() if name not in PLAIN or name in used or asname}
            if added:
                spelled = sorted([*(f"{name} as {asname}" if asname else name for name, asname in remaining.items()), *added])
                module = "." * node.level + (node.module or "")
                end = node.end_lineno or node.lineno
                lines[node.lineno - 1 : end] = [f"from {module} import {', '.join(spelled)}\n", *[""] * (end - node.lineno)]
    return "".join(lines)


def _defined(node: ast.stmt) -> set[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name}
    return {target.id for target in getattr(node, "targets", ()) if isinstance(target, ast.Name)}
