"""Loops that append to a sequence: over a buffer of the final length, so that each step has the same shapes and all are compiled once."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor, span_of
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.scan.growing_loops import GrowingLoop, growing_loops
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Observed, Span

NAMES = ("length", "steps", "window", "step", "i", "carry", "end", "start", "last")
"""The names that the rewrite adds."""
UNLIKE = "the loop that appends to `{}` could not be written over a buffer: its rewrite is of another form"


@dataclass
class _Plan:
    """A growing loop, where its parts stand, and the names of what is added."""

    growing: GrowingLoop
    axis: int
    rank: int
    names: dict[str, str]
    contexts: frozenset[Span]
    reads: dict[Span, int]
    """Expressions that take the last element of a result → the axis."""
    ends: dict[Span, int]
    """Those that take the last element of the sequence itself → the axis."""
    growth: Span
    appended: Span
    limit: Span | None
    limits: list[cst.BaseExpression] = field(default_factory=list)
    """The limit of the contexts after rewriting."""
    modules: frozenset[str] = frozenset()

    @property
    def sequence(self) -> str:
        return self.growing.sequence


class GrowInBuffers(Rule):
    """Append in a buffer: `for _ in range(n): … x = torch.cat((x, y), 1)` → `jnp.pad` and a `fori_loop` whose steps all have the same shapes.

    What a step reads of the sequence is a window of constant length, and of what a call makes of it the element that was the last one is taken.
    Declines where the call is not known to be causal, or where names live longer than a step that are no tensors of one shape.
    """

    KEEP = ("def f(tokens, g, n: int):\n    for _ in range(n):\n        tokens = [*tokens, g(tokens)[-1]]\n    return tokens\n",)
    CHANGE = ()

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._plans: list[_Plan] = []

    # -- the plan ---------------------------------------------------------------------------------------------------
    def visit_For(self, node: cst.For) -> None:
        function, span = self.context.function, self.context.span(node)
        if function is None or self.context.constructing:
            return
        for growing in growing_loops(function):
            if span_of(growing.loop, self.context.file.lines).line == span.line and (plan := self._plan(growing, function)) is not None:
                self._plans.append(plan)

    def _plan(self, growing: GrowingLoop, function: ast.AST) -> _Plan | None:
        sequence, appended = self._seen(growing.growth.value), self._seen(growing.appended)
        limits = {ast.dump(context.limit) if context.limit is not None else "" for context in growing.contexts}
        ranks = {len(shape) for fact in (sequence, appended) if fact for shape in fact.shapes}
        if len(ranks) != 1 or len(limits) > 1 or sequence is None or appended is None:
            return None
        rank = ranks.pop()
        axis = growing.axis % rank
        axes = {context.axis for context in growing.contexts if context.axis is not None} | {_axis(end) for end in growing.ends}
        single = all(shape[axis] == 1 for shape in appended.shapes)
        causal = all((fact := self._seen(reading.call)) is not None and fact.causal for reading in growing.readings)
        limit = growing.contexts[0].limit if growing.contexts else None
        if axes - {axis} or not single or not causal or sequence.dtypes != appended.dtypes or len(sequence.dtypes) != 1:
            return None
        if not self._constant(limit, growing) or not all(self._one_shape(function, name) for name in growing.carried):
            return None
        return self._located(growing, function, axis, rank, limit)

    def _located(self, growing: GrowingLoop, function: ast.AST, axis: int, rank: int, limit: ast.expr | None) -> _Plan:
        used = {node.id for node in walk(function) if isinstance(node, ast.Name)} | {
            node.arg for node in walk(function) if isinstance(node, ast.arg)
        }
        names = {name: name if name not in used else f"{growing.sequence}_{name}" for name in NAMES}
        reads = {self._span(read): reading.axis for reading in growing.readings for read in reading.reads}
        ends = {self._span(end): axis for end in growing.ends}
        contexts = frozenset(self._span(context.node) for context in growing.contexts)
        spans = self._span(growing.growth), self._span(growing.appended), None if limit is None else self._span(limit)
        return _Plan(growing, axis, rank, names, contexts, reads, ends, *spans, modules=self._modules(growing))

    def _constant(self, limit: ast.expr | None, growing: GrowingLoop) -> bool:
        """Whether a limit is the same in each step."""
        if limit is None:
            return True
        bound = {node.id for statement in growing.loop.body for node in walk(statement) if isinstance(node, ast.Name) and _stores(node)}
        plain = all(not isinstance(node, (ast.Call, ast.Subscript)) for node in ast.walk(limit))
        return plain and not any(isinstance(node, ast.Name) and node.id in bound for node in ast.walk(limit))

    def _one_shape(self, function: ast.AST, name: str) -> bool:
        facts = [self._seen(node) for node in walk(function) if isinstance(node, ast.Name) and node.id == name and not _stores(node)]
        observed = [fact for fact in facts if fact is not None]
        alike = len({(fact.shapes, fact.dtypes) for fact in observed}) == 1
        return bool(observed) and alike and all(is_tensor(fact) and "none" not in fact.kinds and len(fact.shapes) == 1 for fact in observed)

    def _modules(self, growing: GrowingLoop) -> frozenset[str]:
        """The names of modules in the body."""
        nodes = [node for statement in growing.loop.body for node in walk(statement) if isinstance(node, ast.Name)]
        modules = {
            node.id for node in nodes if (fact := self._seen(node)) is not None and all(kind.startswith("module:") for kind in fact.kinds)
        }
        own = self.context.self_name()
        return frozenset({*modules, own} if own and self.context.cls and self.context.repo.is_module_class(self.context.cls) else modules)

    def _span(self, node: ast.AST) -> Span:
        return span_of(node, self.context.file.lines)

    def _seen(self, node: ast.AST) -> Observed | None:
        return self.context.facts.observed.get(self._span(node))

    # -- the body ---------------------------------------------------------------------------------------------------
    def leave_IfExp(self, original: cst.IfExp, updated: cst.BaseExpression) -> cst.BaseExpression | None:
        return self._context_of(original, updated)

    def leave_Name(self, original: cst.Name, updated: cst.BaseExpression) -> cst.BaseExpression | None:
        return self._context_of(original, updated)

    def leave_UnaryOperation(self, original: cst.UnaryOperation, updated: cst.BaseExpression) -> None:
        for plan in self._plans:
            if isinstance(updated, cst.UnaryOperation) and plan.limit == self.context.span(original.expression):
                plan.limits.append(updated.expression)

    def leave_Subscript(self, original: cst.Subscript, updated: cst.BaseExpression) -> cst.BaseExpression | None:
        if (context := self._context_of(original, updated)) is not None:
            return context
        span = self.context.span(original)
        for plan in self._plans:
            if span in plan.reads:
                return self._element(plan, original, updated, plan.reads[span], plan.names["last"], indexed=span == plan.appended)
            if span in plan.ends:
                return self._element(plan, original, updated, plan.ends[span], f"{plan.names['end']} - 1", indexed=span == plan.appended)
        return None

    def _context_of(self, original: cst.BaseExpression, updated: cst.BaseExpression) -> cst.BaseExpression | None:
        """The window of the sequence in place of a context."""
        plan = next((plan for plan in self._plans if self.context.span(original) in plan.contexts), None)
        if plan is None:
            return None
        window, name = plan.names["window"], plan.sequence
        text = f"jax.lax.dynamic_slice_in_dim({name}, {plan.names['start']}, {window}, axis={plan.axis})"
        if plan.limit is None:
            text = f"{name}[{', '.join([':'] * plan.axis + [f':{window}'])}]"
        return cst.parse_expression(text)

    def _element(
        self, plan: _Plan, original: cst.Subscript, updated: cst.BaseExpression, axis: int, index: str, *, indexed: bool
    ) -> cst.BaseExpression | None:
        """`x[:, -1]` → `x[:, last]`, and `x[:, -1:]` → a slice of one element from there."""
        if not isinstance(updated, cst.Subscript) or len(updated.slice) != len(original.slice):
            self.context.hole(original, UNLIKE.format(plan.sequence))
            return None
        part = cst.parse_expression(index)
        if indexed or isinstance(updated.slice[axis].slice, cst.Index):
            entries = list(updated.slice)
            entries[axis] = entries[axis].with_changes(slice=cst.Index(part))
            return updated.with_changes(slice=entries)
        return self.context.build(f"jax.lax.dynamic_slice_in_dim({{x}}, {index}, 1, axis={axis})", x=updated.value)

    def leave_Assign(self, original: cst.Assign, updated: cst.BaseSmallStatement) -> cst.Assign | None:
        plan = next((plan for plan in self._plans if plan.growth == self.context.span(original)), None)
        if plan is None:
            return None
        appended = self._appended(plan, updated)
        if appended is None or not isinstance(updated, cst.Assign):
            self.context.hole(original, UNLIKE.format(plan.sequence))
            return None
        index = ", ".join([":"] * plan.axis + [plan.names["end"]])
        return updated.with_changes(value=self.context.build(f"{plan.sequence}.at[{index}].set({{value}})", value=appended))

    def _appended(self, plan: _Plan, updated: cst.BaseSmallStatement) -> cst.BaseExpression | None:
        """The new element without the axis along which the sequence grows."""
        match updated:
            case cst.Assign(value=cst.Call(args=[cst.Arg(value=cst.Tuple(elements=[_, last]) | cst.List(elements=[_, last])), *_])):
                value = last.value
            case _:
                return None
        if plan.appended in plan.reads or plan.appended in plan.ends:
            return value
        match value:
            case cst.Call(func=cst.Attribute(attr=cst.Name("expand_dims")), args=[cst.Arg(value=inner), cst.Arg(value=cst.Integer(axis))]):
                if int(axis) == plan.axis:
                    return inner
            case cst.Subscript(value=inner, slice=[*wholes, cst.SubscriptElement(slice=cst.Index(value=cst.Name("None")))]):
                if len(wholes) == plan.axis == plan.rank - 1 and all(_is_whole(entry) for entry in wholes):
                    return inner
        return self.context.build(f"jnp.squeeze({{x}}, axis={plan.axis})", x=value)

    # -- the loop ---------------------------------------------------------------------------------------------------
    def leave_For(self, original: cst.For, updated: cst.For) -> cst.FlattenSentinel[cst.BaseStatement] | None:
        line = self.context.span(original).line
        plan = next((plan for plan in self._plans if plan.growing.loop.lineno == line), None)
        if plan is None or not isinstance(updated, cst.For) or not isinstance(updated.iter, cst.Call):
            return None
        self._plans.remove(plan)
        body = list(updated.body.body)
        used = _names(body)
        handed = [*sorted({*plan.modules, "rngs"} & used), plan.sequence, *plan.growing.carried]
        count, first = self._count(plan, updated.iter)
        statements = [*first, *self._room(plan, count), self._step(plan, body, handed), self._run(plan, count, handed)]
        return cst.FlattenSentinel([statements[0].with_changes(leading_lines=updated.leading_lines), *statements[1:]])

    def _count(self, plan: _Plan, called: cst.Call) -> tuple[str, list[cst.BaseStatement]]:
        """The number of steps as text, and the statement that computes it, if any."""
        code = [cst.Module([]).code_for_node(argument.value) for argument in called.args]
        if len(code) == 1 and isinstance(called.args[0].value, (cst.Name, cst.Integer, cst.Attribute)):
            return code[0], []
        value = code[0] if len(code) == 1 else f"max({code[1]} - {_enclosed(called.args[0].value, code[0])}, 0)"
        return plan.names["steps"], _parsed(f"{plan.names['steps']} = {value}\n")

    def _room(self, plan: _Plan, count: str) -> list[cst.BaseStatement]:
        """The statements before the loop: the length, the buffer, and the window."""
        name, names = plan.sequence, plan.names
        widths = ", ".join(f"(0, {count})" if axis == plan.axis else "(0, 0)" for axis in range(plan.rank))
        lines = [
            f"{names['length']} = {name}.shape[{plan.axis}]",
            f"{name} = jnp.pad({name}, ({widths}{',' * (plan.rank == 1)}))  # of the final length: all steps are alike",
        ]
        if plan.limit is not None:
            limit = cst.Module([]).code_for_node(plan.limits[0])
            lines.append(f"{names['window']} = min({limit}, {name}.shape[{plan.axis}])")
        elif plan.contexts:
            lines.append(f"{names['window']} = max({name}.shape[{plan.axis}] - 1, 1)  # the last element is never read")
        return _parsed("\n".join(lines) + "\n")

    def _step(self, plan: _Plan, body: Sequence[cst.CSTNode], handed: Sequence[str]) -> cst.BaseStatement:
        names = plan.names
        lines = [f"{_listed(handed)} = {names['carry']}", f"{names['end']} = {names['length']} + {names['i']}"]
        if plan.limit is not None:
            lines.append(f"{names['start']} = jnp.maximum({names['end']} - {names['window']}, 0)")
        if plan.reads:
            since = f" - {names['start']}" if plan.limit is not None else ""
            lines.append(f"{names['last']} = {names['end']} - 1{since}")
        head = _parsed("\n".join(lines) + "\n")
        step = cst.ensure_type(_parsed(f"def {names['step']}({names['i']}, {names['carry']}):\n    pass\n")[0], cst.FunctionDef)
        result = _parsed(f"return {_listed(handed)}\n")
        statements = [node for node in (*head, *body, *result) if isinstance(node, cst.BaseStatement)]
        return step.with_changes(body=cst.IndentedBlock(statements), leading_lines=[cst.EmptyLine(indent=False)])

    def _run(self, plan: _Plan, count: str, handed: Sequence[str]) -> cst.BaseStatement:
        results = [name if name == plan.sequence or name in plan.growing.carried else "_" for name in handed]
        module = "nnx" if len(handed) > 1 + len(plan.growing.carried) else "jax.lax"
        self.context.traced |= {(self.context.function_key, name) for name in results}
        initial = f"({_listed(handed)})" if len(handed) > 1 else handed[0]
        call = f"{_listed(results)} = {module}.fori_loop(0, {count}, {plan.names['step']}, {initial})\n"
        return _parsed(call)[0].with_changes(leading_lines=[cst.EmptyLine(indent=False)])


def _parsed(text: str) -> list[cst.BaseStatement]:
    return [node for node in cst.parse_module(text).body if isinstance(node, cst.BaseStatement)]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def _enclosed(node: cst.BaseExpression, code: str) -> str:
    return code if isinstance(node, (cst.Name, cst.Integer, cst.Attribute, cst.Call, cst.Subscript)) else f"({code})"


def _is_whole(entry: cst.SubscriptElement) -> bool:
    return isinstance(entry.slice, cst.Slice) and entry.slice.lower is entry.slice.upper is entry.slice.step is None


def _stores(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _axis(end: ast.Subscript) -> int:
    """The axis of the one entry that is no `:`."""
    entries = end.slice.elts if isinstance(end.slice, ast.Tuple) else [end.slice]
    return next(axis for axis, entry in enumerate(entries) if not isinstance(entry, ast.Slice) or entry.lower is not None)


def _names(nodes: Iterable[cst.CSTNode]) -> set[str]:
    class Names(cst.CSTVisitor):
        def __init__(self) -> None:
            self.found: set[str] = set()

        def visit_Attribute(self, node: cst.Attribute) -> bool:
            node.value.visit(self)
            return False

        def visit_Arg(self, node: cst.Arg) -> bool:
            node.value.visit(self)
            return False

        def visit_Name(self, node: cst.Name) -> None:
            self.found.add(node.value)

    names = Names()
    for node in nodes:
        node.visit(names)
    return names.found
