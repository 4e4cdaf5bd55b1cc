"""Follows what a boolean mask selects through a function, row by row, to where the same mask takes the results:

    hidden = self.norm(x[mask])
    out[mask] = self.mlp(hidden)

How many rows there are depends on values. If nothing but such writes sees the rows, they may as well be computed
for each place of the mask, and left out of the result where the mask does not hold.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from migrate_agent.tools.rewrite.analysis.facts import Facts, is_tensor, span_of
from migrate_agent.tools.rewrite.analysis.repo import FileModel, FunctionNode
from migrate_agent.tools.rewrite.analysis.routing.mixing import REDUCTIONS
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Observed, Span

FLAT = frozenset({"view", "reshape", "flatten", "ravel"})
"""Methods that give a mask one axis, in the same order."""
STATIC = frozenset({"dtype", "device", "ndim", "is_cuda", "requires_grad"})
COUNTING = frozenset({"numel", "size", "__len__", "nelement"})


class Mask(NamedTuple):
    """A boolean tensor by its text, and how often the names in it were bound before: another binding makes another mask."""

    text: str
    versions: tuple[int, ...]


class MaskedRows(NamedTuple):
    """Spans of the reads `x[mask]`, of the targets `y[mask]`, of the statements that ask whether a mask selects anything, and of the places that it
    selects (`torch.where(mask)`) where nothing but such reads and writes uses them, with the span of the mask.
    """

    reads: frozenset[Span]
    writes: frozenset[Span]
    guards: frozenset[Span]
    indices: Mapping[Span, Span]


ELSE = Mask("", ())
"""No mask: a value that is not made of rows."""
NOTHING = MaskedRows(frozenset(), frozenset(), frozenset(), {})


@dataclass
class _Group:
    """What is known of the rows of one mask."""

    reads: set[Span] = field(default_factory=set)
    writes: set[Span] = field(default_factory=set)
    counts: set[int] = field(default_factory=set)
    """How many rows were seen."""
    spoiled: bool = False


class _Walk:
    """Goes through the statements of a function in order, and knows which local names hold rows of which mask."""

    def __init__(self, file: FileModel, facts: Facts, function: FunctionNode, mixes: Callable[[str], bool]) -> None:
        self.file, self.facts, self.function, self.mixes = file, facts, function, mixes
        self.rows: dict[str, frozenset[Mask]] = {}
        """Local name → the masks whose rows it may hold; several where that depends on the way taken."""
        arguments = function.args
        self.versions: dict[str, int] = {a.arg: 0 for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        self.groups: dict[Mask, _Group] = {}
        self.flattened: dict[str, str] = {}
        """Local name → the mask that it is, with all axes in one."""
        self.asked: dict[Span, set[Mask]] = {}
        """Statement → the masks of which it asks whether they select anything."""
        self.written: dict[Span, set[Mask]] = {}
        self.indices: dict[str, dict[Span, Span]] = {}
        """Local name that holds the places that a mask selects → where it is bound, and the mask there. It stands for the mask."""
        self.known_uses: set[int] = set()
        """Nodes that name such places, where the mask does as well."""

    def result(self) -> MaskedRows:
        """What may be rewritten, after the walk."""
        self.block(self.function.body)
        while True:
            whole = [group for group in self.groups.values() if not group.spoiled and group.writes and group.reads]
            others = [group for group in self.groups.values() if group not in whole]
            reads, writes = (
                {span for group in whole for span in getattr(group, kind)} - {span for group in others for span in getattr(group, kind)}
                for kind in ("reads", "writes")
            )
            guards = self._guards(writes) if writes else frozenset()
            lost = {name for name in self.indices if not self._stands_for_mask(name, reads, guards)}
            if not any(self._spoil_named(name) for name in lost):
                break
        indices = {span: mask for name, places in self.indices.items() if name not in lost for span, mask in places.items()}
        return MaskedRows(frozenset(reads), frozenset(writes), guards, indices)

    def _stands_for_mask(self, name: str, reads: set[Span], guards: frozenset[Span]) -> bool:
        """Whether all uses of places that a mask selects are reads and writes of rows, or tests that are dropped."""
        loads = [node for node in walk(self.function) if isinstance(node, ast.Name) and node.id == name]
        stores = [node for node in loads if not isinstance(node.ctx, ast.Load)]
        asked = {span for span, masks in self.asked.items() if any(mask.text == name for mask in masks)}
        groups = [group for mask, group in self.groups.items() if mask.text == name]
        known = all(id(node) in self.known_uses for node in loads if isinstance(node.ctx, ast.Load))
        return (
            known and len(stores) == len(self.indices[name]) and asked <= guards and bool(groups) and all(g.reads <= reads for g in groups)
        )

    def _spoil_named(self, name: str) -> bool:
        """Give up the rows at some places. Returns whether that was news."""
        masks = [mask for mask, group in self.groups.items() if mask.text == name and not group.spoiled]
        self._spoil(masks)
        return bool(masks)

    # -- statements -------------------------------------------------------------------------------------------------

    def block(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                self._assign(targets, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign([target], value)
            case ast.AugAssign(target=target, value=value):
                self._augment(target, value)
            case ast.If(test=test, body=body, orelse=orelse):
                self._ask(node, test)
                self._branches(body, orelse)
            case ast.For(target=target, iter=source, body=body, orelse=orelse):
                self._spoil(self.masks(source))
                for _ in range(2):
                    self._bind(target, frozenset())
                    self.block(body)
                self.block(orelse)
            case ast.While(test=test, body=body):
                for _ in range(2):
                    self._spoil(self.masks(test))
                    self.block(body)
            case ast.With(items=items, body=body):
                for item in items:
                    self._spoil(self.masks(item.context_expr))
                self.block(body)
            case ast.Expr(value=ast.Call() as call):
                self._call_statement(call)
            case ast.FunctionDef() | ast.ClassDef() | ast.Try():
                # What a closure or a handler does with the rows is not followed.
                self._spoil(mask for n in walk(node) if isinstance(n, ast.Name) for mask in self.rows.get(n.id, ()))
            case ast.Assert():
                # An assertion about the rows holds for copies of them too.
                self._ask(node, node.test)
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self._spoil(self.masks(child))

    def _assign(self, targets: list[ast.expr], value: ast.expr) -> None:
        masks = self.masks(value)
        self._note_flat(targets, value)
        fact = self._fact(value)
        single = fact is not None and set(fact.kinds) <= {"int", "float", "bool"}
        for target in targets:
            if single and isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Name):
                self.known_uses.add(id(target.slice))  # one number fits, wherever it goes
            self._bind(target, masks)
        mask = self._mask_behind(value) if len(targets) == 1 and isinstance(targets[0], ast.Name) else None
        if mask is not None and isinstance(targets[0], ast.Name):
            spans = (span_of(node, self.file.lines) for node in (value, mask))
            self.indices.setdefault(targets[0].id, {}).update([tuple(spans)])  # type: ignore[list-item]

    def _bind(self, target: ast.expr, masks: frozenset[Mask]) -> None:
        match target:
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part in parts:
                    self._bind(part, masks)
            case ast.Name(id=name):
                self._touch(name)
                self.rows.pop(name, None)
                if masks:
                    self.rows[name] = masks
            case ast.Subscript():
                self._store(target, masks)
            case ast.Starred() | ast.Attribute():
                self._spoil(masks)
                self._touch(_root(target))

    def _store(self, target: ast.Subscript, masks: frozenset[Mask]) -> None:
        """`y[mask] = rows`, or a write to the rows themselves."""
        mask = self.mask_of(target)
        inside = self.masks(target.value)
        if mask is not None and not inside and masks <= {mask} and self._all_of_rest(target):
            self.groups.setdefault(mask, _Group())
            if masks:
                self.known_uses.add(id(_first(target)))
                self.groups[mask].writes.add(span_of(target, self.file.lines))
                self.written.setdefault(span_of(target, self.file.lines), set()).add(mask)
        else:
            keeps_rows = bool(inside) and _is_full(_first(target)) and masks <= inside
            self._spoil(masks if keeps_rows else masks | inside)
        self._touch(_root(target))

    def _augment(self, target: ast.expr, value: ast.expr) -> None:
        masks = self.masks(value)
        if isinstance(target, ast.Name):
            own = self.rows.get(target.id, frozenset())
            # `total += rows` adds up as many rows as the mask selects.
            self._spoil(masks if not own else (masks | own) if masks - own else frozenset())
            self._touch(target.id)
        else:
            self._bind(target, masks)

    def _branches(self, body: list[ast.stmt], orelse: list[ast.stmt]) -> None:
        before, bound = dict(self.rows), set(self.versions)
        self.block(body)
        after, self.rows = self.rows, before
        self.block(orelse)
        for name in {*after, *self.rows}:
            sides = after.get(name), self.rows.get(name)
            missing = frozenset({ELSE}) if None in sides and name in bound else frozenset()
            self.rows[name] = frozenset().union(*(side for side in sides if side is not None), missing)

    def _call_statement(self, call: ast.Call) -> None:
        """A call for its effect: only methods that change rows in place may see them."""
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        own = self.masks(receiver) if receiver is not None else frozenset()
        given = frozenset(mask for argument in (*call.args, *(k.value for k in call.keywords)) for mask in self.masks(argument))
        inplace = isinstance(call.func, ast.Attribute) and call.func.attr.endswith("_") and isinstance(receiver, ast.Name)
        self._spoil(given | own if not inplace or (given and given != own) else ())
        if receiver is not None and inplace:
            self._touch(_root(receiver))

    def _note_flat(self, targets: list[ast.expr], value: ast.expr) -> None:
        """`flat = mask.view(-1)` selects the same rows, of what has all its leading axes in one."""
        match targets, value:
            case [[ast.Name(id=name)], ast.Call(func=ast.Attribute(value=ast.Name() as mask, attr=attr), args=args)] if attr in FLAT:
                if self._is_mask(mask) and [ast.unparse(argument) for argument in args] in ([], ["-1"]):
                    self.flattened[name] = mask.id
                    return
        for target in targets:
            if isinstance(target, ast.Name):
                self.flattened.pop(target.id, None)

    # -- expressions ------------------------------------------------------------------------------------------------

    def masks(self, node: ast.expr) -> frozenset[Mask]:
        """The masks of which an expression holds rows. Rows that get mixed spoil their mask."""
        if isinstance(node, ast.Name):
            found = self.rows.get(node.id, frozenset())
            self._spoil(found if len(found) > 1 else ())
            return found
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and (mask := self.mask_of(node)) is not None:
            return self._read(node, mask)
        if isinstance(node, ast.Attribute) and node.attr in STATIC:
            return frozenset()
        if isinstance(node, ast.Call) and self._is_reduction(node):
            return self._reduce(node)
        if isinstance(node, ast.Lambda | ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp):
            self._spoil(mask for child in walk(node)[1:] if isinstance(child, ast.Name | ast.Subscript) for mask in self.masks(child))
            return frozenset()
        found = frozenset(mask for child in _operands(node) for mask in self.masks(child))
        if len(found) > 1:
            self._spoil(found)
        if found and not self._keeps_rows(node, found):
            self._spoil(found)
        return frozenset() if isinstance(node, ast.Compare) and not is_tensor(self._fact(node)) else found

    def _read(self, node: ast.Subscript, mask: Mask) -> frozenset[Mask]:
        group = self.groups.setdefault(mask, _Group())
        fact = self._fact(node)
        inside = self.masks(node.value)
        if inside or fact is None or not fact.shapes or not all(fact.shapes) or not self._simple_rest(node):
            group.spoiled = True
            self._spoil(inside)
            return frozenset()
        self.known_uses.add(id(_first(node)))
        group.reads.add(span_of(node, self.file.lines))
        group.counts |= {shape[0] for shape in fact.shapes}
        return frozenset({mask})

    def _reduce(self, node: ast.Call) -> frozenset[Mask]:
        """A function that mixes rows, unless it works along another axis."""
        operands = list(_operands(node))
        direct = [
            part for operand in operands for part in walk(operand) if isinstance(part, ast.Subscript) and self.mask_of(part) is not None
        ]
        names = [part for operand in operands for part in walk(operand) if isinstance(part, ast.Name) and part.id in self.rows]
        fact = self._fact(node)
        if direct and not names and (fact is None or not any(fact.shapes)):
            return frozenset()  # `ReduceMaskedParts` leaves the others out, or refuses
        found = frozenset(mask for operand in operands for mask in self.masks(operand))
        if not found or (self._axis_of_parts(node) and self._keeps_rows(node, found)):
            return found
        self._spoil(found)
        return found

    def _axis_of_parts(self, node: ast.Call) -> bool:
        """Whether a call names an axis that is not the rows': `dim=-1`, `dim=1`."""
        named = [k.value for k in node.keywords if k.arg in ("dim", "axis", "dims")]
        positional = [a for a in node.args if isinstance(a, ast.Constant | ast.UnaryOp) and isinstance(_number(a), int)]
        operand = node.func.value if isinstance(node.func, ast.Attribute) and is_tensor(self._fact(node.func.value)) else None
        first = operand if operand is not None else node.args[0] if node.args else None
        if isinstance(first, ast.List | ast.Tuple) and first.elts:
            first = first.elts[0]
        fact = self._fact(first) if first is not None else None
        ranks = {len(shape) for shape in fact.shapes} if fact else set()
        axis = _number((named or positional[-1:] or [ast.Constant(None)])[0])
        return isinstance(axis, int) and len(ranks) == 1 and axis % max(ranks.pop(), 1) != 0

    def _is_reduction(self, node: ast.Call) -> bool:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
        return name in REDUCTIONS

    def _keeps_rows(self, node: ast.expr, found: frozenset[Mask]) -> bool:
        """Whether each row of a value that was computed from rows belongs to one of them, as far as its shapes tell."""
        fact = self._fact(node)
        counts = {count for mask in found if mask in self.groups for count in self.groups[mask].counts}
        if isinstance(node, ast.Attribute) and node.attr == "shape":
            return True  # what is done with it decides
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in COUNTING:
            return bool(node.args) and _number(node.args[0]) not in (0, None)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            return isinstance(_number(node.slice), int) and _number(node.slice) != 0
        if (
            isinstance(node, ast.Call)
            and (module := self._fact(node.func))
            and any(self.mixes(kind.removeprefix("module:")) for kind in module.kinds if kind.startswith("module:"))
        ):
            return False
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("len", "int", "float", "bool", "print"):
            return False
        if fact is None or not is_tensor(fact):
            if fact is None:
                return isinstance(node, ast.Tuple | ast.List | ast.Starred | ast.Attribute)
            return not set(fact.kinds) & {"int", "float", "bool"}
        if isinstance(node, ast.Subscript):
            if is_tensor(self._fact(node.value)) and not _is_full(_first(node)):
                return False
        return all(shape and shape[0] in counts for shape in fact.shapes)

    # -- masks ------------------------------------------------------------------------------------------------------

    def mask_of(self, node: ast.Subscript) -> Mask | None:
        """The mask that stands first in a subscript of a tensor."""
        first = _first(node)
        return self._mask(first) if self._is_mask(first) and is_tensor(self._fact(node.value)) else None

    def _mask(self, node: ast.expr) -> Mask:
        text = ast.unparse(node)
        match node:
            case ast.Name(id=name) if name in self.flattened:
                return self._mask(ast.Name(self.flattened[name], ast.Load()))
            case ast.Call(func=ast.Attribute(value=value, attr=attr), args=args) if attr in FLAT:
                if [ast.unparse(argument) for argument in args] in ([], ["-1"]):
                    return self._mask(value)
        names = sorted({part.id for part in ast.walk(node) if isinstance(part, ast.Name)})
        return Mask(text, tuple(self.versions.get(name, 0) for name in names))

    def _mask_behind(self, value: ast.expr) -> ast.expr | None:
        """The mask whose selected places an expression is: `torch.where(mask)`, `mask.nonzero().squeeze(-1)`, `torch.where(mask)[0]`."""
        match value:
            case ast.Subscript(value=ast.Call() as inner, slice=ast.Constant(value=0)) if (
                mask := self._places(inner, several=True)
            ) is not None:
                return mask if self._rank(mask) == 1 else None
            case ast.Call(func=ast.Attribute(value=ast.Call() as inner, attr="squeeze" | "flatten" | "view" | "reshape"), args=args):
                mask = self._places(inner, several=False)
                kept = [ast.unparse(argument) for argument in args] in ([], ["-1"], ["1"])
                return mask if mask is not None and kept and self._rank(mask) == 1 else None
            case ast.Call():
                return self._places(value, several=True)
        return None

    def _places(self, call: ast.Call, several: bool) -> ast.expr | None:
        """The mask whose places a call gives: as one index for each axis, or as rows of indices."""
        options = {k.arg: isinstance(k.value, ast.Constant) and k.value.value for k in call.keywords}
        dotted = self.facts.dotted.get(span_of(call.func, self.file.lines), "")
        if (dotted == "torch.where" and len(call.args) == 1 and not options and several) or (
            dotted == "torch.nonzero" and len(call.args) == 1 and options.get("as_tuple", False) is several
        ):
            mask = call.args[0]
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "nonzero" and not call.args and not dotted:
            mask = call.func.value
            if options.get("as_tuple", False) is not several:
                return None
        else:
            return None
        return mask if self._is_bool(mask) and set(options) <= {"as_tuple"} else None

    def _rank(self, node: ast.expr) -> int:
        fact = self._fact(node)
        ranks = {len(shape) for shape in fact.shapes} if fact is not None else set()
        return ranks.pop() if len(ranks) == 1 else -1

    def _is_mask(self, node: ast.expr) -> bool:
        return self._is_bool(node) or (isinstance(node, ast.Name) and node.id in self.indices)

    def _is_bool(self, node: ast.expr) -> bool:
        fact = self._fact(node)
        return fact is not None and is_tensor(fact) and set(fact.dtypes) == {"bool"} and bool(fact.shapes) and all(fact.shapes)

    def _simple_rest(self, node: ast.Subscript) -> bool:
        """Whether what stands behind the mask selects no further elements by arrays."""
        rest = node.slice.elts[1:] if isinstance(node.slice, ast.Tuple) else []
        return all(_is_full(part) or isinstance(part, ast.Constant | ast.Slice) or self._is_int(part) for part in rest)

    def _all_of_rest(self, node: ast.Subscript) -> bool:
        return all(_is_full(part) for part in (node.slice.elts[1:] if isinstance(node.slice, ast.Tuple) else []))

    def _is_int(self, node: ast.expr) -> bool:
        fact = self._fact(node)
        return fact is not None and set(fact.kinds) == {"int"}

    def _fact(self, node: ast.AST) -> Observed | None:
        return self.facts.observed.get(span_of(node, self.file.lines)) if hasattr(node, "lineno") else None

    def _touch(self, name: str) -> None:
        self.versions[name] = self.versions.get(name, 0) + 1

    def _spoil(self, masks: Iterable[Mask]) -> None:
        for mask in masks:
            self.groups.setdefault(mask, _Group()).spoiled = True

    # -- guards -----------------------------------------------------------------------------------------------------

    def _ask(self, node: ast.stmt, test: ast.expr) -> None:
        """A test may ask whether there are any rows; `_guards` decides such a test."""
        asks = asks_for_any(test)
        if asks is not None and asks.counts_rows and isinstance(asks.of, ast.Name) and asks.of.id in self.indices:
            self.known_uses.add(id(asks.of))
            self.asked.setdefault(span_of(node, self.file.lines), set()).add(self._mask(asks.of))
        elif asks is not None and asks.counts_rows and (masks := self.masks(asks.of)):
            self.asked.setdefault(span_of(node, self.file.lines), set()).update(masks)
        elif asks is not None and not asks.counts_rows and self._is_bool(asks.of):
            self.asked.setdefault(span_of(node, self.file.lines), set()).add(self._mask(asks.of))
        else:
            self._spoil(self.masks(test))

    def _guards(self, writes: set[Span]) -> frozenset[Span]:
        """The statements that only leave out what there are no rows for: `if mask.any(): y[mask] = …`, `if mask.sum() == 0: continue`."""
        guards = set()
        for holder in walk(self.function):
            body = getattr(holder, "body", None)
            for position, node in enumerate(body if isinstance(body, list) else ()):
                asks = asks_for_any(node.test) if isinstance(node, ast.If) and not node.orelse else None
                masks = self.asked.get(span_of(node, self.file.lines)) if asks is not None else None
                if not isinstance(node, ast.If) or not isinstance(body, list) or asks is None or masks is None:
                    continue
                skips = all(isinstance(step, ast.Continue | ast.Pass) for step in node.body)
                inside = node.body if asks.positive else body[position + 1 :] if skips and isinstance(holder, ast.For) else []
                if inside and self._only_writes(inside, writes, masks):
                    guards.add(span_of(node, self.file.lines))
        return frozenset(guards)

    def _only_writes(self, body: list[ast.stmt], writes: set[Span], masks: set[Mask]) -> bool:
        """Whether statements do nothing but write rows of these masks, and bind names that nobody reads elsewhere."""
        bound: set[str] = set()
        written = 0
        for statement in body:
            targets = (
                statement.targets
                if isinstance(statement, ast.Assign)
                else [statement.target]
                if isinstance(statement, ast.AugAssign)
                else []
            )
            for target in (part for one in targets for part in (one.elts if isinstance(one, ast.Tuple) else [one])):
                span = span_of(target, self.file.lines)
                if isinstance(target, ast.Name):
                    bound.add(target.id)
                elif span in writes and self.written[span] == masks:
                    written += 1
                else:
                    return False
            if not targets:
                return False
        own = {id(node) for statement in body for node in walk(statement)}
        elsewhere = (n for n in walk(self.function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and id(n) not in own)
        return bool(written) and not any(n.id in bound for n in elsewhere)


class _Question(NamedTuple):
    """A test whether something is there: of a mask, or of rows, which are counted."""

    of: ast.expr
    counts_rows: bool
    positive: bool = True
    """Whether it holds if something is there."""


def asks_for_any(test: ast.expr) -> _Question | None:
    """`mask.any()`, `mask.sum() == 0`, `rows.numel() > 0`, `not …`."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            asks = asks_for_any(inner)
            return None if asks is None else asks._replace(positive=not asks.positive)
        case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[]):
            return asks_for_any(inner)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr="any"), args=[asked]):
            return _Question(asked, counts_rows=False)
        case ast.Call(func=ast.Attribute(value=asked, attr="any"), args=[]):
            return _Question(asked, counts_rows=False)
        case ast.Compare(left=left, ops=[operator], comparators=[ast.Constant(value=int() as bound)]):
            counted, kind = _counted(left), (type(operator), bound)
            positive = kind in ((ast.Gt, 0), (ast.NotEq, 0), (ast.GtE, 1))
            negative = kind in ((ast.Eq, 0), (ast.LtE, 0), (ast.Lt, 1))
            return counted._replace(positive=positive) if counted is not None and (positive or negative) else None
    return None


def _counted(node: ast.expr) -> _Question | None:
    """`mask` of `mask.sum()`, `rows` of `rows.numel()`, `len(rows)` and `rows.shape[0]`."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[]):
            return _counted(inner)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr="sum" | "count_nonzero"), args=[asked]):
            return _Question(asked, counts_rows=False)
        case ast.Call(func=ast.Attribute(value=asked, attr="sum" | "count_nonzero"), args=[]):
            return _Question(asked, counts_rows=False)
        case ast.Call(func=ast.Attribute(value=asked, attr="numel"), args=[]):
            return _Question(asked, counts_rows=True)
        case ast.Call(func=ast.Name(id="len"), args=[asked]):
            return _Question(asked, counts_rows=True)
        case ast.Call(func=ast.Attribute(value=asked, attr="size"), args=[ast.Constant(value=0)]):
            return _Question(asked, counts_rows=True)
        case ast.Subscript(value=ast.Attribute(value=asked, attr="shape"), slice=ast.Constant(value=0)):
            return _Question(asked, counts_rows=True)
    return None


def _first(node: ast.Subscript) -> ast.expr:
    return node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice


def _operands(node: ast.expr) -> Iterator[ast.expr]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield child
        elif isinstance(child, ast.keyword):
            yield child.value


def _is_full(node: ast.expr) -> bool:
    """`:` or `...`"""
    if isinstance(node, ast.Slice):
        return node.lower is None and node.upper is None and node.step is None
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def _number(node: ast.expr) -> object:
    """A literal whole number."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
            return -value
    return None


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def masked_rows(file: FileModel, facts: Facts, function: FunctionNode, mixes: Callable[[str], bool]) -> MaskedRows:
    """What of a function may be computed for all rows that a mask may select. `mixes` says of the class of a module whether it may mix rows."""
    has_mask = any(isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load) for node in walk(function))
    return _Walk(file, facts, function, mixes).result() if has_mask else NOTHING
