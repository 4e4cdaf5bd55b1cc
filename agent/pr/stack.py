"""Which units share a request, and which request stands on which: pure functions of the units, their needs and the files they change.

A request is a unit, or a group of units that need each other. Requests that need each other's code or change the same file form a chain, in the
order of the run's commits: each stands on the one below, so that its diff is its own, and merging from the bottom never conflicts. Chains that
share nothing stand side by side on the target branch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import networkx as nx  # type: ignore[import-untyped]  # it ships no types

from migrate_agent.agent.pr.run import Change

PREFIX = "migrate-agent/pr/"
"""What the names of our branches begin with. Nothing is ever pushed elsewhere."""
SINGLE = f"{PREFIX}all"


@dataclass(frozen=True)
class Piece:
    """What one request holds."""

    branch: str
    changes: tuple[Change, ...]

    @property
    def units(self) -> tuple[str, ...]:
        """Ids of its units."""
        return tuple(change.unit for change in self.changes)


Chain = tuple[Piece, ...]


def branch_of(unit: str) -> str:
    """The branch of a unit: `migrate-agent/pr/model.py/GPT` for `model.py:GPT`; what git allows in no name is spelt `=2e`."""
    parts = unit.replace(":", "/").split("/")
    return PREFIX + "/".join(map(_component, parts))


def _component(text: str) -> str:
    spelt = "".join(letter if letter.isalnum() or letter in "._-+" else f"={ord(letter):x}" for letter in text)
    spelt = spelt.replace("..", ".=2e").removesuffix(".lock") + ("=2elock" if spelt.endswith(".lock") else "")
    return f"={ord('.'):x}{spelt[1:]}" if spelt.startswith(".") else spelt


def single(changes: Sequence[Change]) -> tuple[Chain, ...]:
    """One request for all."""
    return ((Piece(SINGLE, tuple(changes)),),) if changes else ()


def stacked(changes: Sequence[Change]) -> tuple[Chain, ...]:
    """The chains, bottom first; in the order of the run's commits."""
    pieces = [Piece(branch_of(group[0].unit), tuple(group)) for group in _groups(changes)]
    graph: nx.Graph = nx.Graph()
    graph.add_nodes_from(range(len(pieces)))
    graph.add_edges_from((low, high) for high in range(len(pieces)) for low in range(high) if _linked(pieces[low], pieces[high]))
    return tuple(tuple(pieces[index] for index in sorted(part)) for part in sorted(nx.connected_components(graph), key=min))


def _linked(low: Piece, high: Piece) -> bool:
    below, above = set(low.units), set(high.units)
    needed = any(below & set(change.needs) for change in high.changes) or any(above & set(change.needs) for change in low.changes)
    return needed or any(one.paths & other.paths for one in low.changes for other in high.changes)


def _groups(changes: Sequence[Change]) -> list[list[Change]]:
    """Units that need each other, with what was committed between them: each unit once, in the order of the commits."""
    position = {change.unit: index for index, change in enumerate(changes)}
    needs: nx.DiGraph = nx.DiGraph()
    needs.add_nodes_from(position)
    needs.add_edges_from((change.unit, need) for change in changes for need in change.needs if need in position)
    last = {
        min(positions): max(positions)
        for part in nx.strongly_connected_components(needs)
        if (positions := [position[unit] for unit in part])
    }
    groups: list[list[Change]] = []
    end = -1
    for index, change in enumerate(changes):
        if index > end:
            groups.append([])
        groups[-1].append(change)
        end = max(end, last.get(index, index))
    return groups


def bottom(candidates: Sequence[str], fits: Callable[[str], bool]) -> str:
    """The first commit that a chain can stand on; the last of them always can."""
    return next((commit for commit in candidates[:-1] if commit and fits(commit)), candidates[-1])
