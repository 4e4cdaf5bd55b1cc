"""Rows that a mask selects, and that are filled with one value."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import Facts, is_tensor, span_of
from migrate_agent.tools.rewrite.analysis.repo import FileModel, FunctionNode
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Span

FILLS = frozenset({"index_fill", "index_fill_"})
COUNTS = frozenset({"numel", "nelement"})


class Filled(NamedTuple):
    """Calls that select places, expressions that are their list as indices, and tests whether there are any."""

    selections: frozenset[Span] = frozenset()
    lists: frozenset[Span] = frozenset()
    tests: frozenset[Span] = frozenset()


class FillRowsByMask(Rule):
    """Fill the rows that a mask selects: `places = torch.nonzero(mask)`, `x.index_fill_(0, places.squeeze(), 0)` → `places = padded_nonzero(mask)[0]`,
    `x = index_fill(x, 0, places, 0)`.

    Past the last place, the indices lie beyond the end, and writes leave them out. A test whether there are any places goes. Declines where anything
    else is done with the places, since their number depends on values.
    """

    KEEP = ("import numpy as np\n\ndef f(x, mask):\n    rows = np.nonzero(mask)\n    return x[rows]\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor, labels: torch.Tensor):\n    x = x.clone()\n    places = torch.nonzero(labels.view(-1) == 0)\n"
            "    if places.dim() > 0:\n        x.index_fill_(0, places.squeeze(), 0.0)\n    return x\n",
            "def f(x: jax.Array, labels: jax.Array):\n    places = padded_nonzero(labels.reshape(-1) == 0)[0]\n"
            "    x = index_fill(x, 0, places, 0.0)\n    return x\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, labels: torch.Tensor):\n    places = (labels.view(-1) < 0).nonzero().squeeze(1)\n"
            "    return x.index_fill(0, places, 1.0)\n",
            "def f(x: jax.Array, labels: jax.Array):\n    places = padded_nonzero(labels.reshape(-1) < 0)[0]\n"
            "    return index_fill(x, 0, places, 1.0)\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        filled, span = filled_here(self.context), self.context.span(original)
        if span in filled.lists:
            return updated.func.value if isinstance(updated.func, cst.Attribute) else None
        if span not in filled.selections:
            return None
        mask = updated.args[0].value if updated.args else updated.func.value  # type: ignore[attr-defined]
        return self.context.build("vendored.padded_nonzero({mask})[0]", mask=mask.with_changes(lpar=[], rpar=[]))

    def leave_Subscript(self, original: cst.Subscript, updated: cst.Subscript) -> cst.BaseExpression | None:
        return updated.value if self.context.span(original) in filled_here(self.context).lists else None

    def leave_If(self, original: cst.If, updated: cst.If) -> cst.FlattenSentinel[cst.BaseStatement] | None:
        if self.context.span(original.test) not in filled_here(self.context).tests or not isinstance(updated.body, cst.IndentedBlock):
            return None
        self.context.drop_holes(original.test)
        body = [statement for statement in updated.body.body if isinstance(statement, cst.BaseStatement)]
        first = body[0].with_changes(leading_lines=[*updated.leading_lines, *body[0].leading_lines])  # type: ignore[attr-defined]
        return cst.FlattenSentinel([first, *body[1:]])


def filled_here(context: Context) -> Filled:
    """`filled_rows` of the function that is being rewritten, found out once."""
    function = context.function
    if function is None:
        return Filled()
    cache = context.file.__dict__.setdefault("_filled_rows", {})
    if id(function) not in cache:
        cache[id(function)] = filled_rows(function, context.file, context.facts)
    filled: Filled = cache[id(function)]
    return filled


def filled_rows(function: FunctionNode, file: FileModel, facts: Facts) -> Filled:
    """Where a function selects places of a mask of one axis only to fill the rows there."""
    parents = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    selections: set[Span] = set()
    lists: set[Span] = set()
    tests: set[Span] = set()
    for assign in (node for node in walk(function) if isinstance(node, ast.Assign)):
        if len(assign.targets) != 1 or not isinstance(assign.targets[0], ast.Name):
            continue
        name, (call, steps) = assign.targets[0].id, _peeled(assign.value)
        if not isinstance(call, ast.Call) or not _selects(call, file, facts) or any(isinstance(step, ast.Subscript) for step in steps):
            continue
        uses = list(_uses(function, name))
        own = _Uses(parents, bool(steps))
        if sum(isinstance(node.ctx, ast.Store) for node in uses) == 1 and all(map(own.take, uses)) and own.lists:
            selections.add(span_of(call, file.lines))
            lists |= {span_of(node, file.lines) for node in (*steps, *own.lists) if not isinstance(node, ast.Name)}
            tests |= {span_of(node, file.lines) for node in own.tests}
    return Filled(frozenset(selections), frozenset(lists), frozenset(tests))


def _selects(call: ast.Call, file: FileModel, facts: Facts) -> bool:
    """Whether this is `torch.nonzero(mask)` or `mask.nonzero()` of a mask of one axis."""
    if call.keywords or not isinstance(call.func, ast.Attribute) or call.func.attr != "nonzero":
        return False
    dotted = facts.dotted.get(span_of(call.func, file.lines), "")
    if (dotted != "torch.nonzero" or len(call.args) != 1) and (dotted or call.args):
        return False
    mask = call.args[0] if call.args else call.func.value
    fact = facts.observed.get(span_of(mask, file.lines))
    # Indices have one axis, and so has a mask whose places are made indices, also where none was seen.
    return is_tensor(fact) and fact is not None and {len(shape) for shape in fact.shapes or ()} <= {1}


def _peeled(node: ast.expr) -> tuple[ast.expr, list[ast.expr]]:
    """What a table of places is made a list of: `places` of `places.squeeze()`, `places.view(-1)`, `places[:, 0]`; and these steps."""
    steps: list[ast.expr] = []
    while True:
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr="squeeze" | "flatten"), args=[], keywords=[]):
                pass
            case ast.Call(func=ast.Attribute(value=inner, attr="squeeze"), args=[axis], keywords=[]) if _number(axis) in (1, -1):
                pass
            case ast.Call(func=ast.Attribute(value=inner, attr="view" | "reshape"), args=[size], keywords=[]) if _number(size) == -1:
                pass
            case ast.Subscript(value=inner, slice=ast.Tuple(elts=[ast.Slice(lower=None, upper=None, step=None), ast.Constant(value=0)])):
                pass
            case _:
                return node, steps
        steps.append(node)
        node = inner


def _number(node: ast.expr) -> int | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, int) else None


def _uses(function: FunctionNode, name: str) -> Iterator[ast.Name]:
    return (node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name)


class _Uses:
    """What is done with the places: `listed`, whether their name is a list of indices already."""

    def __init__(self, parents: dict[ast.AST, ast.AST], listed: bool) -> None:
        self.parents, self.listed = parents, listed
        self.lists: list[ast.expr] = []
        self.tests: list[ast.expr] = []

    def take(self, node: ast.Name) -> bool:
        """Note one use; False where it is none of those that the rule knows."""
        if isinstance(node.ctx, ast.Store):
            return True
        top: ast.expr = node
        while (above := self._step(top)) is not None:
            top = above
        if self._fills(top) and (self.listed or top is not node):
            self.lists += [top, *_peeled(top)[1]]
            return True
        test = self._test(node)
        if test is None:
            return False
        self.tests.append(test)
        return True

    def _step(self, node: ast.expr) -> ast.expr | None:
        """The expression around that makes a list of the table."""
        above = self.parents.get(node)
        above = self.parents.get(above) if isinstance(above, ast.Attribute) else above
        if not isinstance(above, (ast.Call, ast.Subscript)):
            return None
        inner, steps = _peeled(above)
        return above if steps and any(step is above for step in steps) and any(part is node for part in (inner, *steps)) else None

    def _fills(self, index: ast.expr) -> bool:
        match self.parents.get(index):
            case ast.Call(func=ast.Attribute(attr=attr), args=[_, second, value], keywords=[]):
                return attr in FILLS and second is index and isinstance(value, (ast.Constant, ast.UnaryOp, ast.Attribute, ast.Name))
        return False

    def _test(self, node: ast.Name) -> ast.expr | None:
        """The test of an `if` around fills alone that asks whether there are places."""
        outer: ast.AST = node
        while not isinstance(outer, ast.stmt):
            outer = self.parents[outer]
        if not isinstance(outer, ast.If) or outer.orelse or not all(self._fills_by(statement, node.id) for statement in outer.body):
            return None
        return outer.test if self._asks(outer.test, node.id) else None

    def _fills_by(self, statement: ast.stmt, name: str) -> bool:
        """Whether a statement fills the places of this name: where there are none, it does nothing."""
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="index_fill_"), args=[_, index, _], keywords=[])):
                table, _ = _peeled(index)
                return isinstance(table, ast.Name) and table.id == name
        return False

    def _asks(self, test: ast.expr, name: str) -> bool:
        match test:
            case ast.Compare(left=counted, ops=[ast.Gt() | ast.NotEq()], comparators=[ast.Constant(value=0)]):
                pass
            case _:
                counted = test
        match counted:
            # A table has two axes, however many places there are; a list of one place that `squeeze` made has none.
            case ast.Call(func=ast.Attribute(value=ast.Name(id=one), attr="dim"), args=[]):
                return one == name and not self.listed
            case ast.Call(func=ast.Attribute(value=ast.Name(id=one), attr=attr), args=[]):
                return one == name and attr in COUNTS
            case ast.Call(func=ast.Attribute(value=ast.Name(id=one), attr="size"), args=[ast.Constant(value=0)]):
                return one == name and not self.listed
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=one)]):
                return one == name and not self.listed
            case ast.Subscript(value=ast.Attribute(value=ast.Name(id=one), attr="shape"), slice=ast.Constant(value=0)):
                return one == name and not self.listed
        return False
