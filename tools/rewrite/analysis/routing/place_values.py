"""What an expression holds of the places that a tensor's values select, and what becomes of the expressions that hold any."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from migrate_agent.tools.rewrite.analysis.routing.selections import Form
from migrate_agent.tools.types import Span


class Kind(StrEnum):
    """Kinds of values; those of selections are the kinds of `Form`."""

    TABLE = "table"
    """A place in each row."""
    COLUMNS = "columns"
    """A place in each column."""
    TABLES = "tables"
    """A tuple of lists."""
    LIST = "list"
    """Indices of one axis."""
    SQUEEZED = "squeezed list"
    """Indices of one axis, which have no axis where `squeeze` met a single one."""
    ROWS = "rows"
    """Values with a row for each place."""
    TURNED = "turned rows"
    """Values with a column of a matrix for each place."""
    COUNT = "count"
    """How many places there are."""


@dataclass(frozen=True)
class PlaceValue:
    """A value of the places of one selection; `None` for a number that counts those of several."""

    kind: Kind
    selection: Span | None


class Unfit(Exception):
    """The number of places would be seen, or the order of values."""

    def __init__(self, *values: PlaceValue | None) -> None:
        super().__init__()
        self.selections = {value.selection for value in values if value is not None}


class Write(NamedTuple):
    """A write to the next places of an array, `out[offset : offset + n]`: the name of the first place, and that of the indices."""

    offset: str
    indices: str


@dataclass
class Padded:
    """What becomes of the expressions of a function, by their spans."""

    selections: dict[Span, Form] = field(default_factory=dict)
    """Calls that select places → the form of their result."""
    steps: set[Span] = field(default_factory=set)
    """What only gave the places that form."""
    reads: set[Span] = field(default_factory=set)
    """`x[places]` and `x.index_select(0, places)`."""
    gathers: set[Span] = field(default_factory=set)
    """Calls of `gather` whose indices are values of places."""
    lookups: dict[Span, str] = field(default_factory=dict)
    """Values of places by which an embedding looks up its rows → the text of that embedding."""
    counts: dict[Span, str] = field(default_factory=dict)
    """Expressions that say how many places there are → the name of the indices."""
    writes: dict[Span, Write] = field(default_factory=dict)
    guards: set[Span] = field(default_factory=set)
    """Tests for places that go: what they leave out does nothing where there are none."""
    unknown: set[int] = field(default_factory=set)
    """The lines of statements in branches that no example ran, and of which nothing can be shown."""


def index_parts(node: ast.Subscript) -> list[ast.expr]:
    """The indices of a subscript, one for each axis that it names."""
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def axis_of(node: ast.Call, position: int) -> int | None:
    """The axis that a call names, or has at this position."""
    named = [option.value for option in node.keywords if option.arg in ("dim", "axis")]
    values = [*named, *node.args[position : position + 1]]
    return whole_number(values[0]) if values else None


def whole_number(node: ast.expr) -> int | None:
    """A whole number that is written out."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError):
        return None
    return value if type(value) is int else None


def is_full(node: ast.expr) -> bool:
    """`:` or `...`"""
    if isinstance(node, ast.Slice):
        return node.lower is node.upper is node.step is None
    return isinstance(node, ast.Constant) and node.value is Ellipsis
