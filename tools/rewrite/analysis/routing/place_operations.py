"""What operations make of values of places: which keep a row for each place, and which would let the number of places be seen."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from migrate_agent.tools.rewrite.analysis.facts import is_tensor, span_of
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FileModel, FunctionNode, Repo, dotted_name
from migrate_agent.tools.rewrite.analysis.routing.place_values import Kind, Padded, PlaceValue, Unfit, whole_number
from migrate_agent.tools.rewrite.analysis.routing.row_functions import ALONG_LAST, KEEPING, REDUCING, FileFacts
from migrate_agent.tools.rewrite.analysis.routing.selections import peeled
from migrate_agent.tools.rewrite.tables.registry import public_name
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Observed, Span

UNCHANGED = KEEPING | {"detach", "cuda", "cpu"}
"""Methods whose result is of the same places, in the same form."""
TRANSPOSED = {Kind.TABLE: Kind.COLUMNS, Kind.COLUMNS: Kind.TABLE, Kind.ROWS: Kind.TURNED, Kind.TURNED: Kind.ROWS}


@dataclass
class PlaceOperations:
    """Knows which local names of a function hold values of which places, and what one operation makes of such values."""

    repo: Repo
    source: FileFacts
    file: FileModel
    owner: ClassModel | None
    function: FunctionNode
    refused: set[Span | None]
    """Selections that stay as they are."""
    observed_lines: frozenset[int]
    values: dict[str, PlaceValue] = field(default_factory=dict)
    depth: int = 0
    """How many calls lead here from the function that is rewritten."""
    result: Padded = field(default_factory=Padded)

    # -- places -----------------------------------------------------------------------------------------------------

    def selected(self, node: ast.expr) -> PlaceValue | None:
        """A selection of places with all that gives it another form."""
        selection = peeled(node, self.dotted) if self.depth == 0 else None
        if selection is None or self.span(selection.call) in self.refused:
            return None
        fact = self.fact(selection.mask)
        if self.held(selection.mask) or fact is None or not is_tensor(fact):
            return None
        if selection.form.flat and any(len(shape) != 1 for shape in fact.shapes):
            return None
        span = self.span(selection.call)
        self.result.selections[span] = selection.form
        self.result.steps |= {self.span(step) for step in selection.steps}
        return PlaceValue(Kind(selection.form.kind), span)

    def read(self, node: ast.expr, index: PlaceValue) -> PlaceValue:
        """The rows of an array at the places."""
        if self.depth:
            raise Unfit(index)
        self.result.reads.add(self.span(node))
        return PlaceValue(Kind.ROWS, index.selection)

    def size(self, value: PlaceValue | None, axis: int | None, node: ast.expr) -> PlaceValue | None:
        """`rows.shape[0]`, which counts the places, and the size of another axis."""
        if value is None:
            return None
        if value.kind in (Kind.ROWS, Kind.LIST, Kind.TABLE) and axis == 0:
            return self._count(value, node)
        if value.kind in (Kind.ROWS, Kind.TABLE) and axis is not None and axis > 0:
            return None
        raise Unfit(value)

    def _count(self, value: PlaceValue, node: ast.expr) -> PlaceValue:
        if self.depth:
            raise Unfit(value)
        self.result.counts[self.span(node)] = self.indices(value)
        return PlaceValue(Kind.COUNT, value.selection)

    def indices(self, value: PlaceValue) -> str:
        """A name that at this point of the function holds the indices of the places."""
        for name, other in self.values.items():
            if other.selection == value.selection and other.kind in (Kind.LIST, Kind.SQUEEZED):
                return name
        raise Unfit(value)

    # -- values of each place ---------------------------------------------------------------------------------------

    def turned(self, value: PlaceValue | None, node: ast.expr) -> PlaceValue | None:
        """The transpose, where `node` is known to be a matrix."""
        if value is None:
            return None
        kind = TRANSPOSED.get(value.kind)
        if kind is None or (value.kind in (Kind.ROWS, Kind.TURNED) and self.rank(node) != 2):
            raise Unfit(value)
        return PlaceValue(kind, value.selection)

    def product(self, first: PlaceValue | None, second: PlaceValue | None) -> PlaceValue | None:
        """A product of matrices."""
        if first is None and second is None:
            return None
        if first is not None and first.kind == Kind.ROWS and second is None:
            return first
        if second is not None and second.kind == Kind.TURNED and first is None:
            return second
        raise Unfit(first, second)

    def pointwise(self, operands: Sequence[tuple[ast.expr, PlaceValue | None]]) -> PlaceValue | None:
        """What is computed element by element from values of the same places, and from numbers that are the same for all of them."""
        values = {value for _, value in operands if value is not None}
        if not values:
            return None
        value = next(iter(values))
        if len(values) > 1 or value.kind not in (Kind.ROWS, Kind.TURNED):
            raise Unfit(*values)
        ranks = {self.rank(node) for node, operand in operands if operand is not None}
        if not all(operand is not None or self._is_same_for_all(node, ranks, value) for node, operand in operands):
            raise Unfit(value)
        return value

    def _is_same_for_all(self, node: ast.expr, ranks: set[int], value: PlaceValue) -> bool:
        fact = self.fact(node)
        if isinstance(node, ast.Constant) or whole_number(node) is not None:
            return True
        if fact is None:
            return False
        if not is_tensor(fact):
            return set(fact.kinds) <= {"int", "float", "bool"}
        if value.kind == Kind.TURNED:
            return bool(fact.shapes) and not any(fact.shapes)
        # As many rows as there happened to be places would not fit as many as there may be.
        return bool(fact.shapes) and -1 not in ranks and all(len(shape) <= min(ranks) for shape in fact.shapes)

    def of_one(self, name: str, node: ast.Call, operands: Sequence[ast.expr], value: PlaceValue, axis: int | None) -> PlaceValue | None:
        """A function of torch of one value of places, or a method of it."""
        texts = [ast.unparse(operand) for operand in operands[1:]]
        if name in UNCHANGED and value.kind != Kind.COUNT:
            return value
        if name == "t" or (name == "transpose" and sorted(texts) in (["0", "1"], ["-1", "0"])):
            return self.turned(value, node)
        if name in ("size", "numel"):
            return self.size(value, 0 if name == "numel" and value.kind == Kind.LIST else axis, node)
        if value.kind == Kind.ROWS and self._keeps_rows(name, operands[0], texts, axis):
            return value
        if name == "squeeze" and not texts and not node.keywords and self._is_single(operands[0], value):
            return PlaceValue(Kind.ROWS, value.selection)
        raise Unfit(value)

    def _keeps_rows(self, name: str, rows: ast.expr, texts: Sequence[str], axis: int | None) -> bool:
        """Whether a function of rows, with the `texts` of its other arguments, computes each row from that row alone."""
        if name in ("linear", "layer_norm", "rms_norm"):
            return True
        if name in (*ALONG_LAST, *REDUCING) or (name == "squeeze" and texts):
            return self.is_behind(axis, rows)
        if name == "unsqueeze":
            return axis in (1, -1)
        return name in ("view", "reshape") and texts == ["-1", "1"] and self.rank(rows) == 1

    def _is_single(self, node: ast.expr, value: PlaceValue) -> bool:
        """Whether a matrix has one number for each place."""
        fact = self.fact(node)
        if fact is None or value.kind not in (Kind.ROWS, Kind.TURNED) or self.rank(node) != 2:
            return False
        return all(shape[1 if value.kind == Kind.ROWS else 0] == 1 for shape in fact.shapes)

    def gather(self, node: ast.Call, operands: Sequence[ast.expr], rows: PlaceValue) -> PlaceValue:
        """Indices that are values of places may lie anywhere where there is none."""
        if rows.kind != Kind.ROWS or whole_number(operands[1]) not in (1, -1) or self.rank(operands[0]) != 2 or self.depth:
            raise Unfit(rows)
        self.result.gathers.add(self.span(node))
        return rows

    def check_sparse(self, values: Sequence[PlaceValue | None]) -> None:
        """A sparse tensor whose indices are the places: what lies beyond the end is left out of it."""
        match values:
            case [PlaceValue(Kind.COLUMNS, selection), PlaceValue(Kind.ROWS, other), *rest] if (
                selection == other and rest and not any(rest)
            ):
                return
        raise Unfit(*values)

    def is_behind(self, axis: int | None, node: ast.expr) -> bool:
        """Whether an axis is known to be none of the rows."""
        return axis is not None and (axis > 0 or (axis == -1 and self.rank(node) >= 2))

    def is_simple(self, part: ast.expr) -> bool:
        """An index behind that of the rows that selects nothing by values of places."""
        if self.held(part):
            return False
        fact = self.fact(part)
        plain = isinstance(part, ast.Slice | ast.Constant) or whole_number(part) is not None
        return plain or (fact is not None and set(fact.kinds) == {"int"})

    # -- facts ------------------------------------------------------------------------------------------------------

    def held(self, node: ast.AST) -> list[PlaceValue]:
        """The values of places whose names stand inside."""
        return [self.values[n.id] for n in walk(node) if isinstance(n, ast.Name) and n.id in self.values]

    def dotted(self, node: ast.expr) -> str:
        """The public dotted name that an expression stands for, or ""."""
        dotted = self.source.facts.dotted.get(self.span(node), "") if self.file is self.source.file else ""
        dotted = dotted or dotted_name(node, self.file)
        return public_name(dotted) if dotted else ""

    def rank(self, node: ast.expr) -> int:
        """How many axes a tensor always had; -1 where that is not known."""
        fact = self.fact(node)
        ranks = {len(shape) for shape in fact.shapes} if fact is not None else set()
        return ranks.pop() if len(ranks) == 1 else -1

    def fact(self, node: ast.AST) -> Observed | None:
        """What an expression of the file that is rewritten was while the examples ran."""
        return self.source.facts.observed.get(self.span(node)) if self.file is self.source.file and hasattr(node, "lineno") else None

    def span(self, node: ast.AST) -> Span:
        """Where a node stands in its file."""
        return span_of(node, self.file.lines)
