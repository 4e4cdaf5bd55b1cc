"""Finds the training step of a script: from the batch to `backward`, and from there to the optimizer's step."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import libcst as cst

from migrate_agent.tools.programs.rewrite.names import Imports, bound, code, parse, read

CLIPS = ("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_")


class NotUnderstoodError(Exception):
    """A program whose training step has a form that no rule covers. `node` is where."""

    def __init__(self, reason: str, node: cst.CSTNode | None = None) -> None:
        super().__init__(reason)
        self.reason, self.node = reason, node


@dataclass
class Core:
    """The training step of a loop, as statements of one block.

    `slice` are the statements that compute the loss, `loss` the expression whose gradient is taken, `clips` what is done to gradients before
    `optimizer` steps. `before` and `after` are the statements between them that stay in the loop, by which side of the step they stand on.
    """

    block: cst.CSTNode
    slice: list[cst.CSTNode]
    loss: cst.BaseExpression
    backward: cst.CSTNode
    step: cst.CSTNode
    optimizer: str
    clips: list[cst.CSTNode] = field(default_factory=list)
    zeros: list[cst.CSTNode] = field(default_factory=list)
    before: list[cst.CSTNode] = field(default_factory=list)
    after: list[cst.CSTNode] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    accumulates: bool = False
    """Whether gradients of several calls of `backward` may add up: it, the step and what sets them to zero each stand somewhere of their own."""


def blocks(module: cst.Module) -> Iterator[tuple[cst.CSTNode, tuple[cst.CSTNode, ...]]]:
    """Each list of statements of a file with the statements that it stands in, outermost first."""
    todo: list[tuple[cst.CSTNode, tuple[cst.CSTNode, ...]]] = [(module, ())]
    while todo:
        block, inside = todo.pop()
        yield block, inside
        for statement in body(block):
            for inner in _inner_blocks(statement):
                todo.append((inner, (*inside, statement)))


def body(block: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """The statements of a block."""
    return block.body if isinstance(block, (cst.Module, cst.IndentedBlock)) else ()


def _inner_blocks(statement: cst.CSTNode) -> list[cst.CSTNode]:
    found: list[cst.CSTNode] = []
    part: cst.CSTNode | None = statement
    while part is not None:
        block = getattr(part, "body", None)
        found += [block] if isinstance(block, cst.IndentedBlock) else []
        found += [handler.body for handler in getattr(part, "handlers", ())]
        final = getattr(part, "finalbody", None)
        found += [final.body] if final is not None else []
        part = getattr(part, "orelse", None)
    return found


def call_of(statement: cst.CSTNode) -> cst.Call | None:
    """The call that a statement consists of, or assigns."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return None
    small = statement.body[0]
    value = small.value if isinstance(small, (cst.Expr, cst.Assign)) else None
    return value if isinstance(value, cst.Call) else None


def method_of(statement: cst.CSTNode) -> tuple[cst.BaseExpression | None, str]:
    """Object and name of the method that a statement calls."""
    call = call_of(statement)
    if call is None or not isinstance(call.func, cst.Attribute):
        return None, ""
    return call.func.value, call.func.attr.value


def optimizer_names(module: cst.Module, imports: Imports) -> dict[str, cst.Call]:
    """Name → the call of a class of `torch.optim` that it is assigned."""
    names: dict[str, cst.Call] = {}
    for block, _ in blocks(module):
        for statement in body(block):
            call = call_of(statement)
            if call is not None and is_optimizer(imports.of(call.func)):
                names |= dict.fromkeys(bound(statement), call)
    return names


def is_optimizer(dotted: str) -> bool:
    """Whether a dotted name is a class of `torch.optim`."""
    return dotted.startswith("torch.optim.") and dotted.count(".") == 2 and dotted.rpartition(".")[2][:1].isupper()


def find_core(module: cst.Module, imports: Imports, modules: frozenset[str]) -> tuple[Core, tuple[cst.CSTNode, ...]]:
    """The training step, and the statements that it stands in. `modules` are the names that hold modules with parameters.

    Raises `NotUnderstoodError` for a form that no rule covers.
    """
    backwards = [(b, i, s) for b, i in blocks(module) for s in body(b) if method_of(s)[1] == "backward"]
    names = optimizer_names(module, imports)
    if not backwards:
        raise NotUnderstoodError("no statement calls backward() in this file")
    if len(backwards) > 1:
        raise NotUnderstoodError("backward() is called in several places", backwards[1][2])
    block, inside, backward = backwards[0]
    steps = [(b, i, s) for b, i in blocks(module) for s in body(b) if method_of(s)[1] == "step" and _name(method_of(s)[0]) in names]
    if len(steps) != 1 or function_of(steps[0][1]) is not function_of(inside):
        raise NotUnderstoodError("the optimizer's step does not stand once in the function of backward()", backward)
    step_block, _, step = steps[0]
    optimizer = _name(method_of(step)[0])
    zeros = [s for b, i in blocks(module) for s in body(b) if function_of(i) is function_of(inside) and is_zero(s, optimizer, modules)]
    if step_block is not block or not any(statement in zeros for statement in body(block)):
        return _accumulated(block, backward, step_block, step, zeros, imports, modules), inside
    return _core(block, backward, step, imports, modules), inside


def function_of(inside: Sequence[cst.CSTNode]) -> cst.CSTNode | None:
    """The function that a block stands in, by the statements around it."""
    return next((statement for statement in inside if isinstance(statement, cst.FunctionDef)), None)


def is_zero(statement: cst.CSTNode, optimizer: str, modules: frozenset[str]) -> bool:
    """Whether a statement sets gradients to zero, by the optimizer or by a module."""
    receiver, method = method_of(statement)
    return method == "zero_grad" and (_name(receiver) == optimizer or _name(receiver) in modules)


def _accumulated(
    block: cst.CSTNode,
    backward: cst.CSTNode,
    step_block: cst.CSTNode,
    step: cst.CSTNode,
    zeros: list[cst.CSTNode],
    imports: Imports,
    modules: frozenset[str],
) -> Core:
    statements = list(body(block))
    core = _begin(block, statements, backward, step, modules)
    core.accumulates, core.zeros = True, zeros
    start = statements.index(core.slice[0]) if core.slice else statements.index(backward)
    _sort(core, statements, start, statements.index(backward), imports)
    for statement in body(step_block):
        call = call_of(statement)
        if call is not None and imports.of(call.func) in CLIPS:
            core.clips.append(statement)
    _refuse_conflicts(core)
    return core


def _name(node: cst.BaseExpression | None) -> str:
    return node.value if isinstance(node, cst.Name) else ""


def _core(block: cst.CSTNode, backward: cst.CSTNode, step: cst.CSTNode, imports: Imports, modules: frozenset[str]) -> Core:
    statements = list(body(block))
    first, last = statements.index(backward), statements.index(step)
    if last < first:
        raise NotUnderstoodError("the optimizer steps before backward()", step)
    core = _begin(block, statements, backward, step, modules)
    start = statements.index(core.slice[0]) if core.slice else first
    _sort(core, statements, start, last, imports)
    _refuse_conflicts(core)
    return core


def _begin(block: cst.CSTNode, statements: list[cst.CSTNode], backward: cst.CSTNode, step: cst.CSTNode, modules: frozenset[str]) -> Core:
    """The core with the statements that compute its loss."""
    call, loss = call_of(backward), method_of(backward)[0]
    if loss is None or call is None or call.args:
        raise NotUnderstoodError("backward() with arguments has no rule", backward)
    core = Core(block, [], loss, backward, step, _name(method_of(step)[0]))
    core.slice = _slice(statements[: statements.index(backward)], loss, modules)
    core.models = [name for name in dict.fromkeys(n for s in [*core.slice, loss] for n in read(s)) if name in modules]
    if not core.models:
        raise NotUnderstoodError("no module with parameters is called for this loss", backward)
    return core


def _slice(before: Sequence[cst.CSTNode], loss: cst.BaseExpression, modules: frozenset[str]) -> list[cst.CSTNode]:
    """The statements that the loss is computed by from a module's parameters."""
    tainted: set[str] = set()
    differentiable = []
    for statement in before:
        if (modules & set(called(statement))) or tainted & set(read(statement)):
            differentiable.append(statement)
            tainted |= set(bound(statement))
    needed = set(read(loss))
    chosen: list[cst.CSTNode] = []
    for statement in reversed(before):
        if statement in differentiable and needed & set(bound(statement)):
            chosen.insert(0, statement)
            needed |= set(read(statement))
    return chosen


def called(node: cst.CSTNode) -> list[str]:
    """Names that are called, whose methods are called, or that are handed to a call."""
    names = []
    for call in (one for one in ast.walk(parse(node)) if isinstance(one, ast.Call)):
        function = call.func
        while isinstance(function, ast.Attribute):
            function = function.value
        names += [one.id for one in (function, *call.args) if isinstance(one, ast.Name)]
    return names


def _sort(core: Core, statements: list[cst.CSTNode], start: int, last: int, imports: Imports) -> None:
    """Say of each statement of the block what becomes of it."""
    made = {name for s in core.slice for name in bound(s)}
    for position, statement in enumerate(statements):
        receiver, method = method_of(statement)
        call = call_of(statement)
        dotted = imports.of(call.func) if call is not None else ""
        if method == "zero_grad" and _name(receiver) in (core.optimizer, *core.models):
            core.zeros += [] if core.accumulates else [statement]
        elif statement in core.slice or statement in (core.backward, core.step) or not start <= position <= last:
            continue
        elif dotted in CLIPS:
            core.clips.append(statement)
            made |= set(bound(statement))
        elif made & set(read(statement)):
            core.after.append(statement)
            made |= set(bound(statement))
        elif core.after and _speaks(statement):
            core.after.append(statement)
        else:
            core.before.append(statement)


def _speaks(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and any(isinstance(small, cst.Expr) for small in statement.body)


def _refuse_conflicts(core: Core) -> None:
    late = {name for statement in core.after for name in bound(statement)}
    for statement in [*core.before, *core.slice, *core.clips]:
        if late & set(read(statement)):
            raise NotUnderstoodError(f"{code(statement).strip()!r} needs what is computed between backward() and the step", statement)
    for statement in [*core.before, *core.after]:
        if ".grad" in code(statement) or (core.optimizer in read(statement) and statement in core.after):
            raise NotUnderstoodError(
                "gradients or the optimizer are used between backward() and the step in a way that no rule covers", statement
            )
