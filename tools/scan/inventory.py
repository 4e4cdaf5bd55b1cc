"""Assembles the inventory: files, units leaf first, findings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from migrate_agent.tools.scan.adopt import adopt_packages
from migrate_agent.tools.scan.detectors import Hit
from migrate_agent.tools.scan.findings import findings
from migrate_agent.tools.scan.functions import function_reasons, function_units, functions_needed
from migrate_agent.tools.scan.graph import Graph, Key, Reach
from migrate_agent.tools.scan.layout import layout
from migrate_agent.tools.scan.names import Resolver
from migrate_agent.tools.scan.plan import leaf_first, plan
from migrate_agent.tools.scan.shell_paths import shell_paths
from migrate_agent.tools.scan.strategy import Choice, choose, is_test
from migrate_agent.tools.scan.survey import Reading, survey
from migrate_agent.tools.scan.walk import Sources, matches, python_files
from migrate_agent.tools.types import Inventory, SourceFile, Unit

_TORCH_FAMILY = frozenset(
    "torch torchvision torchaudio torchtext torch_geometric torch_scatter torch_sparse torchmetrics pytorch_lightning lightning functorch "
    "timm xformers flash_attn".split()
)
"""Packages that cannot be imported without torch."""


def scan(root: Path, paths: Sequence[str] | None = None, exclude: Sequence[str] = ()) -> Inventory:
    """The inventory of a repository: its Python files, its `nn.Module` classes leaf first, and findings about code that is no model maths.

    Reads text only: never imports or runs the code. A file that cannot be parsed or decoded is listed with its `error`, and does not stop
    the others. `paths` and `exclude` are files, folders or glob patterns below `root`. What `exclude` names is not looked at. `paths`
    narrows units (what they need comes along) and findings; other files are still read, for what their names mean.
    """
    names = python_files(root, exclude)
    sources = Sources(root, names)
    own = layout(names, sources, shell_paths(root))
    adoption = adopt_packages(own, sources)
    files = (*own, *adoption.files)
    sources = Sources(root, tuple(file.path for file in files))
    readings = survey(root, files)
    resolver = Resolver(files, sources, {path: reading.facts.exports for path, reading in readings.items()})
    graph = Graph(files, readings, resolver)
    hits = _hits(readings)
    reaches = {key: graph.reach(key) for key in sorted(graph.units, key=lambda key: (key.path, graph.definitions[key].line))}
    reasons = function_reasons(graph)
    functions = function_units(graph, reasons, hits)
    units = [*functions, *_units(graph, reaches, hits, {key for key, reason in reasons.items() if not reason})]
    # Reversed, so that of several units that reach a helper the first one stays.
    carried = {helper: f"{key.path}:{key.name}" for key, reach in reversed(reaches.items()) for helper in reach.helpers}
    finished = tuple(_with_imports(graph, file) for file in files)
    reported = tuple(finding for finding in findings(graph, hits, carried, reasons) if not graph.files[finding.source].adopted)
    inventory = Inventory(root, finished, leaf_first(units), reported, adoption.packages)
    return inventory if paths is None else _narrow(inventory, paths)


def _narrow(inventory: Inventory, paths: Sequence[str]) -> Inventory:
    sources = list(dict.fromkeys(unit.source for unit in inventory.units if matches(unit.source, paths)))
    selected = tuple(finding for finding in inventory.findings if matches(finding.source, paths))
    return replace(inventory, units=plan(inventory, sources) if sources else (), findings=selected)


def _hits(readings: Mapping[str, Reading]) -> Mapping[Key, tuple[Hit, ...]]:
    hits: dict[Key, tuple[Hit, ...]] = {}
    for path, reading in readings.items():
        for hit in reading.hits:
            key = Key(path, hit.owner)
            hits[key] = (*hits.get(key, ()), hit)
    return hits


def _units(graph: Graph, reaches: Mapping[Key, Reach], hits: Mapping[Key, tuple[Hit, ...]], functions: Collection[Key]) -> list[Unit]:
    """The module classes in source order. Modules that only tests use stay with the tests."""
    needed = {need for key, reach in reaches.items() if not is_test(key.path) for need in reach.units}
    units = []
    for key, reach in reaches.items():
        choice = choose(graph, key, reach, hits)
        if is_test(key.path) and key not in needed:
            choice = Choice("keep", "test code: it stays with the original, as its reference")
        units.append(
            Unit(
                source=key.path,
                name=key.name,
                target=graph.files[key.path].target,
                strategy=choice.strategy,
                reason=choice.reason,
                line=graph.definitions[key].line,
                needs=(*(f"{need.path}:{need.name}" for need in reach.units), *functions_needed(graph, key, functions)),
            )
        )
    return units


def _with_imports(graph: Graph, file: SourceFile) -> SourceFile:
    """The file with its resolved imports and its use of torch. A file that does not parse keeps what its text showed."""
    reading = graph.readings[file.path]
    if reading.error:
        return replace(file, error=reading.error)
    keys = [Key(file.path, definition.name) for definition in reading.facts.definitions]
    imported = _imported(graph, file, reading.facts.imported)
    files = {path for key in keys for path in graph.edges(key).files} | imported
    outside = {name.split(".")[0] for key in keys for name in graph.edges(key).outside}
    outside |= {name.split(".")[0] for name in reading.facts.imported}
    uses_torch = bool(outside & _TORCH_FAMILY) or "einops.layers.torch" in " ".join(reading.facts.imported)
    uses_torch = uses_torch or any(key in graph.units for key in keys)
    return replace(file, imports=tuple(sorted(files - {file.path})), uses_torch=uses_torch)


def _imported(graph: Graph, file: SourceFile, names: Sequence[str]) -> set[str]:
    """The files that import statements lead to; for a star import, the files that define the module's names."""
    paths: set[str] = set()
    open_ones = [(name, file) for name in names]
    visited: set[tuple[str, str]] = set()
    while open_ones:
        name, near = open_ones.pop()
        if (name, near.path) in visited:
            continue
        visited.add((name, near.path))
        link = graph.resolver.follow(name.removesuffix(".*"), near)
        if link is None or link.definition is None:
            continue
        paths.update(via.path for via in link.via)
        if name.endswith(".*") and not link.definition.name:
            table = graph.resolver.exports(link.definition.file)
            open_ones += [(dotted, link.definition.file) for local, dotted in table.imports.items() if table.exported(local)]
            open_ones += [(f"{star}.*", link.definition.file) for star in table.stars]
    return paths
