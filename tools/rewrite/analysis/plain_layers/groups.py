"""Groups of files that imports connect: what a class of one group keeps reaches a class of another only by way of who constructs both."""

from __future__ import annotations

from collections.abc import Iterable

import networkx as nx  # type: ignore[import-untyped]  # it ships no types


def connected(paths: Iterable[str], imports: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Path of a file → the number of its group. `imports` are pairs of the file that imports and the one that it imports from."""
    graph = nx.Graph()
    graph.add_nodes_from(paths)
    graph.add_edges_from(imports)
    return {path: number for number, group in enumerate(nx.connected_components(graph)) for path in group}
