"""What a prompt may tell about a unit, drawn from where it is kept: the rewriter's tables, the recording, the verdicts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from migrate_agent.tools.rewrite.tables.registry import Layer, Op, layers, methods, ops
from migrate_agent.tools.types import Evidence, Example, Observed, Span, Verdict

_LIMIT = re.compile(r",?\s*\b(over|within|above|below|past)?\s*the limit\b(\s+of)?\s*[-+\d.eE]*")
MOST = 40
"""Rows, and lines of what was observed, that a prompt shows."""


def rows(source: str, span: tuple[int, int]) -> list[str]:
    """The tables' rows for the torch names and methods used on these lines of a file, as `torch spelling → ours`."""
    tree = ast.parse(source)
    bound = _imports(tree)
    rows_in_order: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and span[0] <= node.lineno <= span[1]:
            row = _row(node, bound)
            if row:
                rows_in_order[row] = None
    return list(rows_in_order)[:MOST]


def observed(source: str, span: tuple[int, int], observations: Mapping[Span, Observed]) -> list[str]:
    """`12: x: tensor float32 (2, 8)` for tensors that names and attributes stood for on these lines."""
    lines = source.splitlines()
    lines_in_order: dict[str, None] = {}
    for span_of_text, observation in sorted(observations.items()):
        if span[0] <= span_of_text.line <= span[1] and span_of_text.line == span_of_text.end_line and observation.shapes:
            text = lines[span_of_text.line - 1][span_of_text.column : span_of_text.end_column]
            if text.replace(".", "").isidentifier():
                shapes = " or ".join(str(shape) for shape in observation.shapes)
                lines_in_order[f"{span_of_text.line}: {text}: {'/'.join(observation.kinds)} {'/'.join(observation.dtypes)} {shapes}"] = None
    return list(lines_in_order)[:MOST]


def verdicts(evidence: Evidence | None) -> list[str]:
    """What did not pass, without any limit: no proposer learns how near is near enough."""
    failures = [verdict for verdict in (evidence.verdicts if evidence else ()) if verdict.status != "pass"]
    return [told(verdict) for verdict in failures]


def told(verdict: Verdict) -> str:
    """One verdict, without its limit."""
    size = f", measured {verdict.measured:.2g}" if verdict.measured is not None else ""
    detail = _LIMIT.sub("", verdict.detail)
    return f"{verdict.stage}/{verdict.check}: {verdict.status}{size}{': ' if detail else ''}{detail}"


def guilty(evidence: Evidence | None) -> str:
    """The attribute of the unit below which the first divergence lies, "" where it is not known or is the unit itself."""
    for verdict in evidence.verdicts if evidence else ():
        if verdict.status == "fail" and verdict.submodule:
            attribute = verdict.submodule.partition(".")[0]
            return attribute if attribute.isidentifier() else ""
    return ""


def example(each: Example, name: str) -> str:
    """How a unit is exercised, as code."""
    lines = [each.setup, f"module = {name}({each.init})", f"module({each.call})"]
    return "\n".join(line for line in lines if line)[:2000]


def _row(node: ast.Attribute, bound: Mapping[str, str]) -> str:
    dotted = _dotted(node, bound)
    layer, op = layers().get(dotted), ops().get(dotted)
    if layer is not None:
        return _layer(layer)
    if op is None and not dotted and isinstance(node.ctx, ast.Load):
        op = methods().get(node.attr.removesuffix("_"))
    return _op(op) if op is not None else ""


def _op(op: Op) -> str:
    return f"`{op.name}({op.signature.strip('()')})` → `{op.to}`" if isinstance(op.to, str) else ""


def _layer(layer: Layer) -> str:
    to = layer.to if isinstance(layer.to, str) and layer.to else f"{layer.vendored}(…, rngs=rngs)"
    return f"`{layer.name}({layer.signature.strip('()')})` → `{to.replace('vendored.', '')}`"


def _dotted(node: ast.expr, bound: Mapping[str, str]) -> str:
    if isinstance(node, ast.Name):
        return bound.get(node.id, "")
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value, bound)
        return f"{before}.{node.attr}" if before else ""
    return ""


def _imports(tree: ast.Module) -> dict[str, str]:
    return dict(_bindings(tree))


def _bindings(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.partition(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"
