"""Finds the training step of a script: from the batch to `backward`, and from there to the optimizer's step."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst

from migrate_agent.tools.programs.contained import Contained
from migrate_agent.tools.programs.rewrite.names import Imports, bound, code, gives, name_of, parse, read
from migrate_agent.tools.programs.rewrite.passes.gradient_loops import gradient_loop

STATE, RECORDS = "random_state", "stack_records"
"""Helpers by which a script notes what its calls of a module were made with, and makes one of such notes."""
CLIPS = ("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_")


class NotUnderstoodError(Exception):
    """A program whose training step has a form that no rule covers. `node` is where."""

    def __init__(self, reason: str, node: cst.CSTNode | None = None) -> None:
        super().__init__(reason)
        self.reason, self.node = reason, node


@dataclass
class Core:
    """A training step of a loop, as statements of one block: what is between the loss and the step of one or more optimizers.

    `slice` are the statements that compute the losses, `losses` the expressions whose gradients are taken and add up, `clips` what is done to
    gradients before `optimizers` step. `before` and `after` are the statements between them that stay in the loop, by which side of the step
    they stand on.
    """

    block: cst.CSTNode
    backwards: list[cst.CSTNode]
    steps: list[cst.CSTNode]
    optimizers: list[str]
    owners: list[str]
    """The modules that the loss calls for those that the optimizers update, in their order."""
    held: list[str] = field(default_factory=list)
    """The modules that the optimizers update, by the names that they are constructed with."""
    paths: list[tuple[str, ...]] = field(default_factory=list)
    """The attributes that lead from each owner to what its optimizer updates; none where that is the owner itself."""
    alone: list[bool] = field(default_factory=list)
    """Whether each owner has no other parameters."""
    slice: list[cst.CSTNode] = field(default_factory=list)
    losses: list[cst.BaseExpression] = field(default_factory=list)
    clips: list[cst.CSTNode] = field(default_factory=list)
    zeros: list[cst.CSTNode] = field(default_factory=list)
    before: list[cst.CSTNode] = field(default_factory=list)
    after: list[cst.CSTNode] = field(default_factory=list)
    fetched: list[cst.CSTNode] = field(default_factory=list)
    """Statements `x = value.item()` of which the loss computes the value, since what it is made of is bound anew before the step."""
    copied: list[cst.CSTNode] = field(default_factory=list)
    """Statements of the slice that another step computes too, whose modules they must leave as they are."""
    shared: list[cst.CSTNode] = field(default_factory=list)
    """Statements of the slice that stand before the step of an earlier core."""
    models: list[str] = field(default_factory=list)
    accumulates: bool = False
    """Whether gradients of several calls of `backward` may add up: it, the step and what sets them to zero each stand somewhere of their own."""

    handed: frozenset[str] = frozenset()
    """Optimizers that the function around it is handed: its modules may have other names where these are constructed."""
    closure: cst.Call | None = None
    """`optimizer.step(closure)`, where the loss is computed in a function that the optimizer calls; its last statement is the core's step."""

    @property
    def gone(self) -> list[cst.CSTNode]:
        """The statements that its functions take the place of."""
        return [*(s for s in self.slice if s not in self.shared), *self.backwards, *self.steps, *self.clips, *self.zeros]


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
    inner: list[cst.CSTNode] = []
    part: cst.CSTNode | None = statement
    while part is not None:
        block = getattr(part, "body", None)
        inner += [block] if isinstance(block, cst.IndentedBlock) else []
        inner += [handler.body for handler in getattr(part, "handlers", ())]
        final = getattr(part, "finalbody", None)
        inner += [final.body] if final is not None else []
        part = getattr(part, "orelse", None)
    return inner


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


Loops = tuple[cst.CSTNode, tuple[cst.CSTNode, ...], cst.CSTNode]
"""A block, the statements that it stands in, and one of its own."""


def find_cores(
    module: cst.Module, imports: Imports, modules: frozenset[str], owners: Mapping[str, str], contained: Sequence[Contained] = ()
) -> tuple[list[Core], tuple[cst.CSTNode, ...]]:
    """The training steps of one function in their order, and the statements that they stand in.

    `modules` are the names that hold modules with parameters, `owners` says of each optimizer which module's parameters it has, or "", and `contained`
    which modules are parts of others.
    Raises `NotUnderstoodError` for a form that no rule covers.
    """
    backwards = [(b, i, s) for b, i in blocks(module) for s in body(b) if method_of(s)[1] == "backward"]
    if not backwards:
        raise NotUnderstoodError("no statement calls backward() in this file")
    inside = backwards[0][1]
    if other := [s for _, i, s in backwards if function_of(i) is not function_of(inside)]:
        raise NotUnderstoodError("backward() is called in several functions, one in the other", other[0])
    steps = [(b, i, s) for b, i in blocks(module) for s in body(b) if method_of(s)[1] == "step" and name_of(method_of(s)[0]) in owners]
    if len(backwards) == 1 and len(steps) == 1 and (name := _closure_name(steps[0][2], backwards[0][1])):
        return [_closed(name, backwards[0], steps[0][2], imports, modules, owners, contained)], inside
    if not steps or any(function_of(i) is not function_of(inside) for _, i, _ in steps):
        raise NotUnderstoodError("the optimizer's step does not stand in the function of backward()", backwards[0][2])
    for optimizer in {name_of(method_of(s)[0]) for _, _, s in steps}:
        if sum(name_of(method_of(s)[0]) == optimizer for _, _, s in steps) > 1:
            raise NotUnderstoodError(f"{optimizer} steps in several places", steps[0][2])
    around = {s: i for _, i, s in backwards}
    zeros = [s for b, i in blocks(module) for s in body(b) if function_of(i) is function_of(inside) and method_of(s)[1] == "zero_grad"]
    if len(backwards) == 1 and len(steps) == 1:
        (block, inside, backward), (step_block, _, step) = backwards[0], steps[0]
        optimizer = name_of(method_of(step)[0])
        zeros = [s for s in zeros if is_zero(s, optimizer, modules)]
        if step_block is not block or not any(statement in zeros for statement in body(block)):
            handed = _parameters(inside) & {optimizer}
            return [_accumulated(block, backward, step_block, step, zeros, imports, modules, owners, handed, contained)], inside
    cores = _pair(module, backwards, steps, owners)
    for core in cores:
        core.handed = _parameters(inside) & set(core.optimizers)
    _slices(cores, modules, contained)
    for number, core in enumerate(cores):
        core.zeros = [s for s in zeros if name_of(method_of(s)[0]) in (*core.optimizers, *core.owners, *core.held)]
        _refuse_without_zeros(core)
        _sort(core, imports, _region(cores, number))
        _refuse_conflicts(core)
    if len(cores) > 1 or len(backwards) > 1:
        _refuse_foreign_gradients(cores, {s: order for order, s in enumerate(in_order(module))})
    return cores, min((around[core.backwards[0]] for core in cores), key=len)


def _refuse_without_zeros(core: Core) -> None:
    """Refuse one of several optimizers whose gradients nothing sets to zero: torch adds those of all steps up."""
    if len(core.optimizers) == 1:
        # What sets those of one to zero was looked for before, by whatever module.
        return
    zeroed = {name_of(method_of(zero)[0]) for zero in core.zeros}
    for pair in zip(core.optimizers, core.owners, core.held, strict=True):
        if not zeroed & set(pair):
            raise NotUnderstoodError(f"gradients of {pair[0]} are set to zero nowhere in the function of its step", core.backwards[0])


def _pair(module: cst.Module, backwards: list[Loops], steps: list[Loops], owners: Mapping[str, str]) -> list[Core]:
    """The cores by the order of calls: those of `backward()` go with the steps that follow in their block."""
    cores: list[Core] = []
    first, second = [s for _, _, s in backwards], [s for _, _, s in steps]
    for block, _ in sorted(blocks(module), key=lambda pair: len(pair[1])):
        pending: list[cst.CSTNode] = []
        last: Core | None = None
        for statement in body(block):
            if statement in first:
                pending.append(statement)
            elif statement in second:
                optimizer = name_of(method_of(statement)[0])
                if pending:
                    last = Core(block, pending, [statement], [optimizer], [owners[optimizer]])
                    cores.append(last)
                elif last is not None:
                    last.steps.append(statement)
                    last.optimizers.append(optimizer)
                    last.owners.append(owners[optimizer])
                else:
                    raise NotUnderstoodError("an optimizer steps where no backward() stands before it", statement)
                pending = []
        if pending:
            raise NotUnderstoodError("no optimizer steps after this backward() in its block", pending[-1])
    order = {statement: number for number, statement in enumerate(in_order(module))}
    return sorted(cores, key=lambda core: order[core.backwards[0]])


def is_clip(statement: cst.CSTNode, imports: Imports) -> bool:
    """Whether a statement clips or scales gradients, or is a condition under which all that is done is that."""
    if gradient_loop(statement) is not None:
        return True
    if isinstance(statement, cst.If):
        return statement.orelse is None and all(is_clip(one, imports) for one in body(statement.body))
    call = call_of(statement)
    return call is not None and imports.of(call.func) in CLIPS


def given_by_clip(statement: cst.CSTNode) -> list[str]:
    """Names that a statement which clips gives values: that of the norm, and not that of a loop's parameter."""
    return [] if isinstance(statement, cst.For) else bound(statement)


def function_of(inside: Sequence[cst.CSTNode]) -> cst.CSTNode | None:
    """The function that a block stands in, by the statements around it."""
    return next((statement for statement in inside if isinstance(statement, cst.FunctionDef)), None)


def is_zero(statement: cst.CSTNode, optimizer: str, modules: frozenset[str]) -> bool:
    """Whether a statement sets gradients to zero, by the optimizer or by a module."""
    receiver, method = method_of(statement)
    return method == "zero_grad" and (name_of(receiver) == optimizer or name_of(receiver) in modules)


def _accumulated(
    block: cst.CSTNode,
    backward: cst.CSTNode,
    step_block: cst.CSTNode,
    step: cst.CSTNode,
    zeros: list[cst.CSTNode],
    imports: Imports,
    modules: frozenset[str],
    owners: Mapping[str, str],
    handed: frozenset[str],
    contained: Sequence[Contained],
) -> Core:
    optimizer = name_of(method_of(step)[0])
    core = Core(block, [backward], [step], [optimizer], [owners[optimizer]], zeros=zeros, accumulates=True, handed=handed)
    _slices([core], modules, contained)
    _sort(core, imports, (0, list(body(block)).index(backward)))
    core.clips += [statement for statement in body(step_block) if is_clip(statement, imports)]
    _refuse_conflicts(core)
    return core


def _closure_name(step: cst.CSTNode, inside: Sequence[cst.CSTNode]) -> str:
    """The name of the innermost function that a block stands in, where an optimizer's step is handed that; else ""."""
    call = call_of(step)
    functions = [statement.name.value for statement in inside if isinstance(statement, cst.FunctionDef)]
    return functions[-1] if call is not None and functions and [code(argument) for argument in call.args] == functions[-1:] else ""


def _closed(
    name: str,
    backward: Loops,
    step: cst.CSTNode,
    imports: Imports,
    modules: frozenset[str],
    owners: Mapping[str, str],
    contained: Sequence[Contained],
) -> Core:
    """The core of `optimizer.step(closure)`: the closure computes the loss, its gradients, and gives the loss back."""
    block, inside, statement = backward
    last = body(block)[-1]
    loss = code(_loss(statement))
    if inside[-1] is not next(s for s in reversed(inside) if isinstance(s, cst.FunctionDef)) or code(last).strip() != f"return {loss}":
        raise NotUnderstoodError(f"{name} does more than compute a loss, call its backward() and give it back", statement)
    optimizer = name_of(method_of(step)[0])
    zeros = [s for s in body(block) if is_zero(s, optimizer, modules)]
    if not zeros:
        raise NotUnderstoodError(f"{name} does not set gradients to zero", statement)
    core = Core(block, [statement], [last], [optimizer], [owners[optimizer]], zeros=zeros, closure=call_of(step))
    _slices([core], modules, contained)
    _sort(core, imports, _region([core], 0))
    _refuse_conflicts(core)
    return core


def _region(cores: Sequence[Core], number: int) -> tuple[int, int]:
    """Where the statements of a core may stand: after the step of the one before it in its block, and up to its own last step."""
    core = cores[number]
    lines = list(body(core.block))
    earlier = [lines.index(step) for other in cores[:number] for step in other.steps if step in lines]
    last = core.steps[-1] if core.steps[-1] in lines else core.backwards[-1]
    return max(earlier, default=-1) + 1, lines.index(last)


def _parameters(inside: Sequence[cst.CSTNode]) -> frozenset[str]:
    """The names that the function around a block is handed."""
    function = function_of(inside)
    return frozenset(one.name.value for one in function.params.params) if isinstance(function, cst.FunctionDef) else frozenset()


def _slices(cores: Sequence[Core], modules: frozenset[str], contained: Sequence[Contained]) -> None:
    """Give each core the statements that compute its losses, and its modules."""
    for core in cores:
        core.losses = [_loss(backward) for backward in core.backwards]
        lines = list(body(core.block))
        before = lines[: lines.index(core.backwards[-1])]
        every = [n for n in dict.fromkeys(n for s in [*before, *core.losses] for n in read(s)) if n in modules]
        # An optimizer that a function is handed has no construction in sight, and its module another name: the only module of the loss is meant.
        known = [owner in (every if name in core.handed else modules) for name, owner in zip(core.optimizers, core.owners, strict=True)]
        core.owners = [owner if seen or len(every) != 1 else every[0] for owner, seen in zip(core.owners, known, strict=True)]
        _find_owners(core, before, every, contained)
    for number, core in enumerate(cores):
        _add_foreign(cores, number, modules)
        _add_changes(core)
        lines = list(body(core.block))
        first, _ = _region(cores, number)
        core.shared = [s for s in core.slice if s in lines[:first]]
        core.models = [n for n in dict.fromkeys(n for s in [*core.slice, *core.losses] for n in read(s)) if n in modules]
        if unowned := [owner for owner in core.owners if owner not in core.models]:
            raise NotUnderstoodError(f"no module of this loss is the one that the optimizer has ({', '.join(unowned)})", core.backwards[0])
        _refuse_changed_inputs(core, lines[:first])


def _find_owners(core: Core, before: Sequence[cst.CSTNode], every: Sequence[str], contained: Sequence[Contained]) -> None:
    """Give a core its slice; a module that its loss does not call is the part of one that it does."""

    def called_by_loss(owner: str) -> bool:
        core.slice = _slice(before, core, frozenset({owner}))
        return any(owner in read(node) for node in (*core.slice, *core.losses))

    core.held, core.paths, core.alone = list(core.owners), [()] * len(core.owners), [True] * len(core.owners)
    for number, owner in enumerate(core.held):
        wholes = [row for row in contained if row.part == owner and row.whole in every] if not called_by_loss(owner) else []
        if len(called := [row for row in wholes if called_by_loss(row.whole)]) == 1:
            core.owners[number], core.paths[number], core.alone[number] = called[0].whole, called[0].path, called[0].alone
    core.slice = _slice(before, core, frozenset(core.owners))


def _loss(backward: cst.CSTNode) -> cst.BaseExpression:
    call, loss = call_of(backward), method_of(backward)[0]
    allowed = call is not None and all(a.keyword is not None and a.keyword.value == "retain_graph" for a in call.args)
    if loss is None or not allowed:
        raise NotUnderstoodError("backward() with arguments has no rule", backward)
    return loss


def _slice(before: Sequence[cst.CSTNode], core: Core, own: frozenset[str]) -> list[cst.CSTNode]:
    """The statements that the losses are computed by from the parameters of the modules `own`."""
    differentiable = tainted(before, own)
    return _needed(before, core, lambda statement: statement in differentiable)


def tainted(statements: Sequence[cst.CSTNode], modules: frozenset[str]) -> list[cst.CSTNode]:
    """The statements whose values come from calls of these modules."""
    names: set[str] = set()
    result = []
    for place, statement in enumerate(statements):
        if notes_calls(statement) or hands_over(statement) or lists_numbers(statement, statements[place + 1 :]):
            names -= set(gives(statement))
        elif (modules & set(called(statement))) or names & set(read(statement)):
            result.append(statement)
            names |= set(gives(statement))
        elif binds_alone(statement):
            names -= set(bound(statement))
    return result


def hands_over(statement: cst.CSTNode) -> bool:
    """Whether a statement is `x = value.numpy()`: Python goes on with numbers, which no gradient reaches."""
    return method_of(statement)[1] in ("numpy", "tolist") and binds_alone(statement) and len(bound(statement)) == 1


def lists_numbers(statement: cst.CSTNode, later: Sequence[cst.CSTNode]) -> bool:
    """Whether a statement is a loop of which the `later` ones read nothing but lists of Python's numbers: `returns.append(value.item())`."""
    if not isinstance(statement, cst.For):
        return False
    calls = [node for node in ast.walk(parse(statement)) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    added = [call for call in calls if call.func.attr in ("append", "insert") and isinstance(call.func.value, ast.Name) and call.args]  # type: ignore[attr-defined]
    names = {call.func.value.id for call in added}  # type: ignore[attr-defined]
    numbers = bool(added) and all(_is_number(call.args[-1]) for call in added)
    return numbers and not _read_of(later, set(gives(statement)) - names)


def _is_number(node: ast.expr) -> bool:
    """Whether an expression is `value.item()`, or a list of such."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return bool(node.elts) and all(map(_is_number, node.elts))
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("item", "tolist") and not node.args


def _read_of(statements: Sequence[cst.CSTNode], names: set[str]) -> set[str]:
    """Those names that statements read before they are bound anew."""
    found: set[str] = set()
    left = set(names)
    for statement in statements:
        found |= left & set(read(statement))
        left -= set(bound(statement)) if binds_alone(statement) else set()
    return found


def notes_calls(statement: cst.CSTNode) -> bool:
    """Whether a statement notes calls of a module, or makes one of such notes: nothing that it gives has gradients."""
    calls = [node.func for node in ast.walk(parse(statement)) if isinstance(node, ast.Call)]
    return any(isinstance(function, ast.Name) and function.id in (STATE, RECORDS) for function in calls)


def _needed(before: Sequence[cst.CSTNode], core: Core, choose: Callable[[cst.CSTNode], bool]) -> list[cst.CSTNode]:
    """Those statements that may be chosen and that bind what a loss needs, whether at once or by others."""
    needed: set[str] = set()
    losses = dict(zip(core.backwards, core.losses, strict=True))
    needed |= set(read(core.losses[-1]))
    chosen: list[cst.CSTNode] = []
    for statement in reversed(before):
        if statement in losses:
            needed |= set(read(losses[statement]))
            continue
        names = set(gives(statement))
        if not needed & names:
            continue
        if binds_alone(statement):
            needed -= set(bound(statement))
        if choose(statement) or (_is_constant(statement) and names & {name for one in chosen for name in gives(one)}):
            chosen.insert(0, statement)
            needed |= set(read(statement))
    return chosen


def _is_constant(statement: cst.CSTNode) -> bool:
    """Whether a statement is `x = 0`, `x = []` or `x = {}`: what a loss that adds up, or its parts, begin with."""
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else None
    value = small.value if isinstance(small, cst.Assign) and len(small.targets) == 1 else None
    if isinstance(value, cst.Call):
        return code(value.func) in ("dict", "list") and not value.args
    if isinstance(value, cst.Dict):
        return all(isinstance(e, cst.DictElement) and isinstance(e.value, (cst.Integer, cst.Float)) for e in value.elements)
    return isinstance(value, (cst.Integer, cst.Float)) or (isinstance(value, cst.List) and not value.elements)


def binds_alone(statement: cst.CSTNode) -> bool:
    """Whether a statement gives its names new values whatever they held, and in any case."""
    return isinstance(statement, cst.SimpleStatementLine) and all(
        isinstance(small, (cst.Assign, cst.AnnAssign)) for small in statement.body
    )


def _add_foreign(cores: Sequence[Core], number: int, modules: frozenset[str]) -> None:
    """Let a core compute what it needs of other modules, unless an earlier step gives it; what a later one computes too leaves its modules alone."""
    core = cores[number]
    lines = list(body(core.block))
    before = lines[: lines.index(core.backwards[-1])]
    foreign = tainted(before, modules)
    earlier = [s for other in cores[:number] for s in other.slice]
    own = set(core.slice)
    core.slice = _needed(before, core, lambda s: s in own or (s in foreign and s not in earlier))
    later = [s for other in cores[number + 1 :] for s in other.slice]
    core.copied = [s for s in core.slice if s in later]


def _add_changes(core: Core) -> None:
    """Let a core compute what changes between its statements: names that it reads before and afterwards."""
    lines = list(body(core.block))
    last = lines.index(core.backwards[-1])
    for position in range(lines.index(core.slice[0]) if core.slice else last, last):
        statement = lines[position]
        if statement in (*core.slice, *core.backwards) or _fetch(statement):
            continue
        names = _read_before(core, lines, position) & {*changed(statement), *gives(statement)}
        later = {name for s in [*lines[position:last], *core.losses] if s in (*core.slice, *core.losses) for name in read(s)}
        if names & later:
            if draws(statement):
                raise NotUnderstoodError(f"{min(names)} is drawn anew between two uses in one step", statement)
            core.slice = [s for s in lines if s in (*core.slice, statement)]


def _read_before(core: Core, lines: Sequence[cst.CSTNode], position: int) -> set[str]:
    """Names that statements of the slice read before a place."""
    return {name for s in lines[:position] if s in core.slice for name in read(s)}


def changed(statement: cst.CSTNode) -> list[str]:
    """Names of what a statement changes in place: `label.fill_(0)`, `label[0] = 1`."""
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else None
    receiver, method = method_of(statement)
    if isinstance(small, cst.Expr) and method.endswith("_") and not method.startswith("_"):
        while isinstance(receiver, cst.Attribute) and receiver.attr.value == "data":
            receiver = receiver.value
        return [name_of(receiver)] if name_of(receiver) else []
    targets = small.targets if isinstance(small, cst.Assign) else ()
    return [t.target.value.value for t in targets if isinstance(t.target, cst.Subscript) and isinstance(t.target.value, cst.Name)]


def draws(statement: cst.CSTNode) -> bool:
    """Whether a statement draws random numbers, by the names that it calls."""
    calls = [one for one in ast.walk(parse(statement)) if isinstance(one, ast.Call)]
    names = [ast.unparse(one.func).split(".") for one in calls]
    return any("random" in parts or parts[-1].rstrip("_").startswith(("rand", "normal", "uniform", "bernoulli")) for parts in names)


def _refuse_changed_inputs(core: Core, earlier: Sequence[cst.CSTNode]) -> None:
    for shared in core.shared:
        later = earlier[list(earlier).index(shared) + 1 :]
        names = {*read(shared)}
        for statement in later:
            if statement not in core.slice and names & {*gives(statement), *changed(statement)}:
                raise NotUnderstoodError("what an earlier step was computed from has changed before this one", core.backwards[0])


def called(node: cst.CSTNode) -> list[str]:
    """Names that are called, whose methods are called, or that are handed to a call."""
    names = []
    for call in (one for one in ast.walk(parse(node)) if isinstance(one, ast.Call)):
        function = call.func
        while isinstance(function, ast.Attribute):
            function = function.value
        names += [one.id for one in (function, *call.args) if isinstance(one, ast.Name)]
    return names


def _sort(core: Core, imports: Imports, region: tuple[int, int]) -> None:
    """Say of each statement of the region what becomes of it."""
    statements = list(body(core.block))
    start = next((i for i in range(region[0], region[1]) if statements[i] in core.slice), statements.index(core.backwards[0]))
    computed = {name for s in core.slice for name in gives(s)}
    for position, statement in enumerate(statements):
        method = method_of(statement)[1]
        if start <= position <= region[1] and statement not in core.steps and leaves(statement):
            raise NotUnderstoodError("the loop goes on without the step where this holds, after the loss was computed", statement)
        if statement in (*core.slice, *core.backwards, *core.steps) or method == "zero_grad" or not start <= position <= region[1]:
            continue
        if is_clip(statement, imports):
            core.clips.append(statement)
            computed |= set(given_by_clip(statement))
        elif computed & set(read(statement)) or _read_before(core, statements, position) & {*changed(statement), *bound(statement)}:
            _sort_late(core, statements, position)
            computed |= set(bound(statement))
        elif core.after and _speaks(statement):
            core.after.append(statement)
        else:
            core.before.append(statement)


def leaves(statement: cst.CSTNode) -> bool:
    """Whether a statement may end the loop around it, its iteration, or the function, other than by an error: `if torch.isnan(loss): continue`."""
    return _leaving(parse(statement), False)


def _leaving(node: ast.AST, in_loop: bool) -> bool:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        return False
    if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
        return any(_leaving(one, True) for one in node.body) or any(_leaving(one, in_loop) for one in node.orelse)
    if isinstance(node, (ast.Break, ast.Continue)):
        return not in_loop
    return isinstance(node, ast.Return) or any(_leaving(one, in_loop) for one in ast.iter_child_nodes(node))


def _sort_late(core: Core, statements: list[cst.CSTNode], position: int) -> None:
    """What is computed from the step's values stands after it, unless these are bound anew before the step."""
    statement = statements[position]
    again = {name for s in statements[position:] if s in core.slice for name in bound(s)}
    if not again & set(read(statement)):
        core.after.append(statement)
    elif _fetch(statement):
        core.fetched.append(statement)
    elif _is_traceable(statement):
        core.slice = [s for s in statements if s in (*core.slice, statement)]
    else:
        raise NotUnderstoodError("a value of the loss is used and then bound anew before the step", statement)


def _fetch(statement: cst.CSTNode) -> bool:
    """Whether a statement is `x = value.item()`."""
    return method_of(statement)[1] == "item" and binds_alone(statement) and len(bound(statement)) == 1


def _is_traceable(statement: cst.CSTNode) -> bool:
    """Whether a statement gives one name a value by tensor maths alone, as far as its text says."""
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else None
    host = ("item", "numpy", "tolist", "cpu", "float", "int", "print", "format", "append", "write")
    calls = [ast.unparse(node.func).rpartition(".")[2] for node in ast.walk(parse(statement)) if isinstance(node, ast.Call)]
    return isinstance(small, cst.Assign) and len(bound(statement)) == 1 and not set(calls) & set(host)


def _speaks(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and any(isinstance(small, cst.Expr) for small in statement.body)


def _refuse_conflicts(core: Core) -> None:
    lines = list(body(core.block))
    for statement in [*core.before, *core.slice, *core.clips]:
        # What is bound later alone, such as the next batch, is not what it reads.
        earlier = lines[: lines.index(statement)] if statement in lines else lines
        if {name for late in core.after if late in earlier for name in bound(late)} & set(read(statement)):
            raise NotUnderstoodError(f"{code(statement).strip()!r} needs what is computed between backward() and the step", statement)
    for statement in [*core.before, *core.after]:
        if ".grad" in code(statement) or (set(core.optimizers) & set(read(statement)) and statement in core.after):
            raise NotUnderstoodError(
                "gradients or the optimizer are used between backward() and the step in a way that no rule covers", statement
            )


def in_order(block: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """All statements of a block, in the order of the text."""
    for statement in body(block):
        yield statement
        for inner in _inner_blocks(statement):
            yield from in_order(inner)


def _refuse_foreign_gradients(cores: Sequence[Core], order: Mapping[cst.CSTNode, int]) -> None:
    """Refuse steps whose parameters may have gradients of another step's loss: torch adds them up until something sets them to zero."""
    for number, core in enumerate(cores):
        first = order[core.backwards[0]]
        earlier = [other for other in cores[:number] if set(core.owners) & set(other.models)]
        after = max((order[b] for other in earlier for b in other.backwards), default=-1)
        for pair in zip(core.optimizers, core.owners, core.held, strict=True):
            if not any(after < order[zero] < first and name_of(method_of(zero)[0]) in pair for zero in core.zeros):
                raise NotUnderstoodError(
                    "gradients are not set to zero between another loss's backward() and that of this one", core.backwards[0]
                )
