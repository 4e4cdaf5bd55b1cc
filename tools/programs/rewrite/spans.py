"""Where observed expressions stand in a script, as it was and as a pass over it left it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from migrate_agent.tools.types import Observed, Span

Positions = Mapping[cst.CSTNode, object]


class ScriptPass(cst.CSTTransformer):
    """One pass over a script. `origin` says of each new node which old one it stands for."""

    def __init__(self) -> None:
        super().__init__()
        self.origin: dict[cst.CSTNode, cst.CSTNode] = {}

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        """Note which new node stands for which old one."""
        result = super().on_leave(original_node, updated_node)
        if isinstance(result, cst.CSTNode):
            self.origin.setdefault(result, original_node)
        return result


@lru_cache(maxsize=4)
def positions_of(module: cst.Module) -> Positions:
    """The position of each node of a file."""
    return MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)


def span_of(position: object) -> Span:
    """The span of a position."""
    start, end = position.start, position.end  # type: ignore[attr-defined]
    return Span(start.line, start.column, end.line, end.column)


def moved(
    new: cst.Module, origin: Mapping[cst.CSTNode, cst.CSTNode], positions: Positions, observed: Mapping[Span, Observed]
) -> dict[Span, Observed]:
    """What was observed, by where the expressions stand now."""
    spans = positions_of(new)
    facts: dict[Span, Observed] = {}
    for node, old in origin.items():
        if node in spans and old in positions and isinstance(node, cst.BaseExpression):
            fact = observed.get(span_of(positions[old]))
            if fact is not None:
                facts[span_of(spans[node])] = fact
    return facts
