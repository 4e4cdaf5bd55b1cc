"""The findings of an inventory: the detectors' hits, and the functions outside of classes that use torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from migrate_agent.tools.scan.detectors import DETECTORS, Hit
from migrate_agent.tools.scan.graph import Graph, Key
from migrate_agent.tools.scan.strategy import is_test
from migrate_agent.tools.types import Finding, Strategy

Carried = Mapping[Key, str]
"""Helper → id of the first unit that reaches it."""
_ORDER: tuple[Strategy, ...] = ("redesign", "substitute", "keep")


def findings(
    graph: Graph, hits: Mapping[Key, tuple[Hit, ...]], carried: Carried, functions: Mapping[Key, str] = MappingProxyType({})
) -> tuple[Finding, ...]:
    """All findings, in source order, each once. `functions` are those of tensor maths: "" for a unit, else why it is none."""
    rows = [*_detected(graph, hits), *_classes(graph), *_local_modules(graph), *_functions(graph, hits, carried, functions)]
    return tuple(sorted(dict.fromkeys(rows), key=lambda finding: (finding.source, finding.line, finding.kind, finding.name)))


def _detected(graph: Graph, hits: Mapping[Key, tuple[Hit, ...]]) -> Iterator[Finding]:
    for key, owner_hits in hits.items():
        for hit in owner_hits:
            row = DETECTORS[hit.row]
            if not row.forward or key in graph.units:
                name = hit.name.removeprefix("builtins.").replace("?.", "(…).")
                yield Finding(key.path, hit.line, key.name or "<module>", row.kind, row.strategy, f"{name}: {row.detail}")


def _classes(graph: Graph) -> Iterator[Finding]:
    rows = [row for row in DETECTORS if row.bases]
    for key, definition in graph.definitions.items():
        if definition.kind != "class":
            continue
        for name in graph.ancestry(key).outside:
            for row in rows:
                if row.base_pattern.fullmatch(name):
                    yield Finding(key.path, definition.line, key.name, row.kind, row.strategy, f"inherits from {name}: {row.detail}")


def _local_modules(graph: Graph) -> Iterator[Finding]:
    for key, definition in graph.definitions.items():
        if definition.kind == "local" and graph.is_module(key):
            detail = "a module class inside a function cannot be built and verified alone: move it to the top level of the file"
            yield Finding(key.path, definition.line, key.name, "local-module", "redesign", detail)


def _functions(graph: Graph, hits: Mapping[Key, tuple[Hit, ...]], carried: Carried, functions: Mapping[Key, str]) -> Iterator[Finding]:
    for key, definition in graph.definitions.items():
        if (
            functions.get(key) == ""
            or definition.kind != "function"
            or not any(name.split(".")[0] == "torch" for name in graph.edges(key).outside)
        ):
            continue
        rows = [DETECTORS[hit.row] for hit in hits.get(key, ()) if not DETECTORS[hit.row].forward]
        # Findings that do not stop a unit from being rewritten do not stop its helpers either.
        if key in carried:
            rows = [row for row in rows if row.unit != "rewrite" or row.strategy == "keep"]
        chosen = next((strategy for strategy in _ORDER for row in rows if row.strategy == strategy), None)
        if chosen is not None:
            kinds = ", ".join(dict.fromkeys(row.kind for row in rows if row.strategy == chosen))
            yield Finding(key.path, definition.line, key.name, "function", chosen, f"uses torch for {kinds}: see the finding there")
        elif key in carried:
            detail = f"rewritten to jax.numpy along with {carried[key]}, which reaches it"
            yield Finding(key.path, definition.line, key.name, "function", "rewrite", detail)
        elif is_test(key.path):
            yield Finding(key.path, definition.line, key.name, "function", "keep", "test code: keep it with the original as its reference")
        else:
            detail = "plain tensor maths that no module reaches: rewritten to jax.numpy when a module or script that calls it is"
            detail = functions.get(key) or detail
            yield Finding(key.path, definition.line, key.name, "function", "rewrite", detail)
