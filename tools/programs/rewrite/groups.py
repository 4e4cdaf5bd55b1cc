"""Which parameters an optimizer is constructed with, in groups or not, and how its rate is set from outside."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from migrate_agent.tools.programs.rewrite.core import Core, NotUnderstoodError, blocks, body, call_of, called, optimizer_names
from migrate_agent.tools.programs.rewrite.names import Imports, bound, code, name_of, parse, read, text_of, unparse
from migrate_agent.tools.programs.rewrite.parameter_loops import parameter_loop

RANK = frozenset({"dim", "ndimension"})
OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


@dataclass(frozen=True)
class PartGroup:
    """A group of the parameters of one part of a module ("": of all of it), and the options that it has for itself, as texts."""

    part: str
    options: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class OptimizerCall:
    """An optimizer over the parameters of the module `model`.

    `parts` are groups by parts of the module. With groups by rank or name, `decays` is the text of the condition on a parameter `p` for which
    `weight_decay` holds, and which leaves the others without.
    `statements` are those that make the groups. `inject`: the program sets the rate while it runs. `trainable` is the text of the filter of the
    parameters that are updated, where these are not all. `stacked`: modules of the program hold layers as stacks, whose parameters have an axis more.
    """

    model: str
    inject: bool
    decays: str = ""
    weight_decay: str = ""
    statements: tuple[cst.CSTNode, ...] = ()
    trainable: str = ""
    parts: tuple[PartGroup, ...] = ()
    stacked: bool = False


@dataclass(frozen=True)
class SchedulerCall:
    """A scheduler: its dotted class and call, and its optimizer by name and class.

    `inner` is the statement that steps it beside the optimizer, where that is all that the program does with it. `parts` are the schedulers that
    `SequentialLR` and `ChainedScheduler` are made of.
    """

    dotted: str
    call: cst.Call
    statement: cst.CSTNode
    optimizer: str
    optimizer_class: str
    inner: cst.CSTNode | None = None
    parts: tuple[SchedulerCall, ...] = ()
    late: bool = False
    """Whether it needs names that are bound after the optimizer is constructed."""


COMPOSED = {"torch.optim.lr_scheduler.SequentialLR": 1, "torch.optim.lr_scheduler.ChainedScheduler": 0}
"""Schedulers that are made of others, and the place of these among their arguments."""


def schedulers_of(module: cst.Module, imports: Imports, cores: Sequence[Core]) -> dict[str, SchedulerCall]:
    """Name → the scheduler that it is assigned."""
    names = optimizer_names(module, imports)
    result: dict[str, SchedulerCall] = {}
    lines = [s for block, _ in blocks(module) for s in body(block) if isinstance(s, cst.SimpleStatementLine)]
    for statement in lines:
        call = call_of(statement)
        dotted = imports.of(call.func) if call is not None else ""
        if call is None or not dotted.startswith("torch.optim.lr_scheduler.") or not call.args or len(bound(statement)) != 1:
            continue
        name = bound(statement)[0]
        parts = _parts(dotted, call, result, lines)
        optimizer = parts[0].optimizer if parts else code(call.args[0].value)
        for part in parts:
            del result[bound(part.statement)[0]]
        if optimizer not in names:
            raise NotUnderstoodError("a scheduler of something other than one optimizer has no rule", statement)
        uses = [s for s in lines if name in read(s)]
        core = next((one for one in cores if optimizer in one.optimizers), cores[0] if cores else None)
        beside = _beside(module, core, name) if core is not None else []
        # A rate that is part of the transform is that of the last update, and torch's is that of the next one.
        own = beside and f"{optimizer}.param_groups" not in text_of(module)
        inner = beside[0] if own and uses == beside and not _in_headers(module, name) else None
        result[name] = SchedulerCall(dotted, call, statement, optimizer, imports.of(names[optimizer].func), inner, parts)
        if inner is not None and _needs_later(module, names[optimizer], result[name]):
            result[name] = replace(result[name], late=True)
    return result


def _beside(module: cst.Module, core: Core, name: str) -> list[cst.CSTNode]:
    """The statements that step a scheduler after each update, in the block that makes it."""
    block, made = _updates(module, core)
    lines = list(body(block))
    beside = [s for s in lines if code(s).strip() == f"{name}.step()"]
    return beside if beside and made and not core.accumulates and lines.index(beside[0]) > lines.index(made) else []


def _needs_later(module: cst.Module, construction: cst.Call, scheduler: SchedulerCall) -> bool:
    """Whether a scheduler needs names that are bound between its optimizer and itself. Raises `NotUnderstoodError` where the optimizer is used there."""
    block = next(block for block, _ in blocks(module) if scheduler.statement in body(block))
    lines = list(body(block))
    start = next((i for i, line in enumerate(lines) if call_of(line) is construction), None)
    if start is None:
        return False
    own = {part.statement for part in scheduler.parts}
    between = [line for line in lines[start + 1 : lines.index(scheduler.statement)] if line not in own]
    names = {name for line in between for name in bound(line)}
    if not names & {name for one in (scheduler, *scheduler.parts) for name in read(one.call)}:
        return False
    if any(scheduler.optimizer in read(line) for line in between):
        raise NotUnderstoodError("an optimizer is used before the names that its schedule needs are bound", scheduler.statement)
    return True


def _parts(
    dotted: str, call: cst.Call, schedulers: Mapping[str, SchedulerCall], lines: Sequence[cst.SimpleStatementLine]
) -> tuple[SchedulerCall, ...]:
    """The schedulers that a scheduler is made of, each of which the program names for that alone. Raises `NotUnderstoodError`."""
    if dotted not in COMPOSED:
        return ()
    named = [a.value for a in call.args if a.keyword is not None and a.keyword.value == "schedulers"]
    plain = [a.value for a in call.args if a.keyword is None]
    listed = next(iter([*named, *plain[COMPOSED[dotted] : COMPOSED[dotted] + 1]]), None)
    names = [code(e.value) for e in listed.elements] if isinstance(listed, cst.List) else []
    alone = [name for name in names if name in schedulers and sum(name in read(line) for line in lines) == 1]
    if not names or alone != names or len({schedulers[name].optimizer for name in names}) != 1:
        raise NotUnderstoodError("a scheduler that is made of others has no rule in this form", call)
    return tuple(schedulers[name] for name in names)


def _updates(module: cst.Module, core: Core) -> tuple[cst.CSTNode, cst.CSTNode | None]:
    """The block that makes one update each time that it runs, and its statement that does."""
    function = next((s for s in module.body if isinstance(s, cst.FunctionDef) and s.body is core.block), None)
    if function is None:
        return core.block, core.steps[-1]
    calls = [(block, s) for block, _ in blocks(module) for s in body(block) if isinstance(s, cst.SimpleStatementLine)]
    calls = [(block, s) for block, s in calls if function.name.value in called(s)]
    return calls[0] if len(calls) == 1 else (core.block, None)


def _in_headers(module: cst.Module, name: str) -> bool:
    headers = [getattr(s, part, None) for block, _ in blocks(module) for s in body(block) for part in ("test", "iter")]
    functions = [s for block, _ in blocks(module) for s in body(block) if isinstance(s, cst.ClassDef)]
    return any(name in read(node) for node in [*headers, *functions] if isinstance(node, cst.CSTNode))


def optimizers_of(
    module: cst.Module, imports: Imports, schedulers: Mapping[str, SchedulerCall], seen: Sequence[str] = (), shared: bool = False
) -> dict[str, OptimizerCall]:
    """Name → the optimizer that it is assigned. One of another form is left out; its construction then has no rule.

    `seen` are names that were seen to hold optimizers: of a script with one optimizer they are names of that one. With `shared` other files set
    rates.
    """
    names = optimizer_names(module, imports)
    aliases = [name for name in seen if name not in names] if len(names) == 1 else []
    outside = {one.optimizer for one in schedulers.values() if one.inner is None}
    loops = [s for block, _ in blocks(module) for s in body(block) if isinstance(s, cst.For)]
    result: dict[str, OptimizerCall] = {}
    for name, call in names.items():
        plain = dict.fromkeys((name, *aliases), OptimizerCall("", False))
        indexed = any(f"{one}.param_groups[" in text_of(module) for one in plain)
        inject = shared or name in outside or indexed or any(rate_of(loop, plain) is not None for loop in loops)
        argument = call.args[0].value if call.args else None
        if argument is None:
            continue
        if (chosen := chosen_parameters(argument)) is not None:
            model, part = chosen
            result[name] = OptimizerCall(model, inject, trainable=trainable(part, frozen_parts(module).get(model, ())))
        elif (groups := _groups(module, argument, inject)) is not None:
            result[name] = groups
        elif (parted := _part_groups(argument)) is not None:
            model, parts = parted
            result[name] = OptimizerCall(model, inject, trainable=_of_parts(parts), parts=parts)
    return result | {alias: call for alias in aliases for call in result.values()}


def parameter_owners(module: cst.Module, imports: Imports) -> dict[str, str]:
    """Optimizer → the module whose parameters it is constructed with; "" where these are of another form."""
    return {name: _owner(module, call) for name, call in optimizer_names(module, imports).items()}


def _owner(module: cst.Module, call: cst.Call) -> str:
    argument = call.args[0].value if call.args else None
    if argument is None:
        return ""
    if (chosen := chosen_parameters(argument)) is not None:
        return chosen[0]
    if (parted := _part_groups(argument)) is not None:
        return parted[0]
    groups = _groups(module, argument, False)
    return groups.model if groups is not None else ""


def _part_groups(argument: cst.BaseExpression) -> tuple[str, tuple[PartGroup, ...]] | None:
    """Module and groups of `[{"params": model.head.parameters()}, {"params": model.body.parameters(), "lr": 1e-4}]`."""
    rows = []
    for element in argument.elements if isinstance(argument, cst.List) else ():
        entries = element.value.elements if isinstance(element.value, cst.Dict) else ()
        named = {code(e.key).strip("\"'"): e.value for e in entries if isinstance(e, cst.DictElement)}
        chosen = chosen_parameters(named["params"]) if "params" in named else None
        if chosen is None or len(named) != len(entries):
            return None
        options = tuple((name, code(value)) for name, value in named.items() if name != "params")
        rows.append((chosen[0], PartGroup(chosen[1], options)))
    models, parts = {model for model, _ in rows}, [group.part for _, group in rows]
    if len(models) != 1 or len(set(parts)) != len(parts) or ("" in parts and len(parts) > 1):
        return None
    return rows[0][0], tuple(group for _, group in rows)


def _of_parts(groups: Sequence[PartGroup]) -> str:
    """The text of the filter of the parameters of these parts."""
    if len(groups) == 1:
        return trainable(groups[0].part, ())
    names = ", ".join(f'"{group.part}"' for group in groups)
    return f"nnx.All(nnx.Param, lambda path, _: path[0] in ({names}))"


def chosen_parameters(node: cst.BaseExpression) -> tuple[str, str] | None:
    """Module and part of `model.parameters()`, `model.head.parameters()` (part `head`), of a list of these, or of a filter of what takes gradients."""
    if (inner := _listed(node)) is not None:
        return chosen_parameters(inner)
    if isinstance(node, cst.Call) and code(node.func) == "filter" and len(node.args) == 2:
        function = node.args[0].value
        takes = isinstance(function, cst.Lambda) and code(function.body).endswith(".requires_grad")
        return chosen_parameters(node.args[1].value) if takes else None
    if isinstance(node, (cst.ListComp, cst.GeneratorExp)) and len(node.for_in.ifs) == 1:
        name = code(node.for_in.target)
        takes = code(node.elt) == name and code(node.for_in.ifs[0].test) == f"{name}.requires_grad"
        return chosen_parameters(node.for_in.iter) if takes else None
    if (model := parameters_of(node)) is not None:
        return model, ""
    if not isinstance(node, cst.Call) or node.args or not isinstance(node.func, cst.Attribute) or node.func.attr.value != "parameters":
        return None
    part = node.func.value
    whole = name_of(part.value) if isinstance(part, cst.Attribute) else ""
    return (whole, part.attr.value) if whole and isinstance(part, cst.Attribute) else None


def _listed(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """What `list(parameters)`, `[*parameters]` or `[p for p in parameters]` lists as it is."""
    if isinstance(node, cst.Call) and code(node.func) in ("list", "tuple", "iter") and len(node.args) == 1 and not node.args[0].star:
        return node.args[0].value
    if isinstance(node, (cst.List, cst.Tuple)) and len(node.elements) == 1 and isinstance(node.elements[0], cst.StarredElement):
        return node.elements[0].value
    if isinstance(node, (cst.ListComp, cst.GeneratorExp)) and not node.for_in.ifs and node.for_in.inner_for_in is None:
        return node.for_in.iter if code(node.elt) == code(node.for_in.target) else None
    return None


def frozen_parts(module: cst.Module) -> dict[str, tuple[str, ...]]:
    """Module → its parts of whose parameters a loop takes no gradients; "" stands for all of it."""
    result: dict[str, tuple[str, ...]] = {}
    for block, _ in blocks(module):
        for statement in body(block):
            loop = parameter_loop(statement) if isinstance(statement, cst.For) else None
            if loop is None or not loop.frozen():
                continue
            of = loop.modules[0]
            whole = name_of(of) or (name_of(of.value) if isinstance(of, cst.Attribute) else "")
            part = "" if name_of(of) else of.attr.value if isinstance(of, cst.Attribute) else ""
            result[whole] = (*result.get(whole, ()), part)
    return result


def trainable(part: str, frozen: Sequence[str]) -> str:
    """The text of the filter of parameters of one part ("": all) without those that are frozen; "" where that is all."""
    if part:
        # What a part is put in place of after its module was frozen takes gradients.
        return f'nnx.All(nnx.Param, lambda path, _: path[0] == "{part}")'
    names = [f'"{name}"' for name in frozen if name]
    if not names or "" in frozen:
        return ""
    condition = f"path[0] != {names[0]}" if len(names) == 1 else f"path[0] not in ({', '.join(names)})"
    return f"nnx.All(nnx.Param, lambda path, _: {condition})"


def parameters_of(node: cst.BaseExpression, method: str = "parameters") -> str | None:
    """The name of the module in `model.parameters()`."""
    if not isinstance(node, cst.Call) or node.args or not isinstance(node.func, cst.Attribute) or node.func.attr.value != method:
        return None
    return name_of(node.func.value) or None


def rate_of(loop: cst.CSTNode, optimizers: Mapping[str, OptimizerCall]) -> tuple[str, cst.BaseExpression] | None:
    """Optimizer and rate of `for group in optimizer.param_groups: group["lr"] = rate`."""
    if not isinstance(loop, cst.For) or not isinstance(loop.iter, cst.Attribute) or loop.iter.attr.value != "param_groups":
        return None
    name, target = code(loop.iter.value), code(loop.target)
    lines = list(body(loop.body))
    small = lines[0].body[0] if len(lines) == 1 and isinstance(lines[0], cst.SimpleStatementLine) else None
    own = (f'{target}["lr"]', f"{target}['lr']")
    if name not in optimizers:
        return None
    if isinstance(small, cst.AugAssign) and code(small.target) in own and target not in read(small.value) and not optimizers[name].decays:
        operator = code(small.operator).strip().removesuffix("=")
        return name, cst.parse_expression(f"get_hyperparameter({name}) {operator} {code(small.value)}")
    if not isinstance(small, cst.Assign) or code(small.targets[0].target) not in own or target in read(small.value):
        return None
    return name, small.value


def rate_of_group(loop: cst.CSTNode, names: Collection[str]) -> str:
    """The optimizer of `for group in optimizer.param_groups: group["lr"] = rate`, of those names; ""."""
    if not isinstance(loop, cst.For) or not isinstance(loop.iter, cst.Attribute) or loop.iter.attr.value != "param_groups":
        return ""
    name, target, lines = code(loop.iter.value), code(loop.target), list(body(loop.body))
    small = lines[0].body[0] if len(lines) == 1 and isinstance(lines[0], cst.SimpleStatementLine) else None
    to = small.target if isinstance(small, cst.AugAssign) else small.targets[0].target if isinstance(small, cst.Assign) else None
    sets = to is not None and code(to) in (f'{target}["lr"]', f"{target}['lr']")
    return name if sets and name in names else ""


def first_rate(node: cst.CSTNode) -> str:
    """The optimizer in `optimizer.param_groups[0]["lr"]`, or ""."""
    text = code(node) if isinstance(node, cst.Subscript) else ""
    for end in ('.param_groups[0]["lr"]', ".param_groups[0]['lr']"):
        if text.endswith(end):
            return text.removesuffix(end)
    return ""


def _assigned(module: cst.Module, name: str) -> tuple[cst.CSTNode, cst.BaseExpression] | None:
    """The only assignment of a name, and its value."""
    rows = []
    for block, _ in blocks(module):
        for statement in body(block):
            small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else None
            if isinstance(small, cst.Assign) and len(small.targets) == 1 and code(small.targets[0].target) == name:
                rows.append((statement, small.value))
    return rows[0] if len(rows) == 1 else None


def _groups(module: cst.Module, argument: cst.BaseExpression, inject: bool) -> OptimizerCall | None:
    """Two groups of one module's parameters, told apart by their rank, of which one has no weight decay."""
    statements: list[cst.CSTNode] = []

    def value(node: cst.BaseExpression) -> cst.BaseExpression | None:
        if not isinstance(node, cst.Name):
            return node
        found = _assigned(module, node.value)
        if found is not None:
            statements.append(found[0])
        return found[1] if found is not None else None

    listed = value(argument)
    if not isinstance(listed, cst.List) or len(listed.elements) != 2:
        return None
    rows = [_group(element.value, value) for element in listed.elements]
    if None in rows:
        return None
    (model, one, first), (other, two, second) = [row for row in rows if row is not None]
    if model != other or not _opposite(one, two) or (first in ("0", "0.0")) == (second in ("0", "0.0")):
        return None
    decays, weight_decay = (one, first) if second in ("0", "0.0") else (two, second)
    _refuse_other_uses(module, statements)
    return OptimizerCall(model, inject, decays, weight_decay, tuple(statements))


def _refuse_other_uses(module: cst.Module, statements: list[cst.CSTNode]) -> None:
    for statement in statements:
        assert isinstance(statement, cst.SimpleStatementLine)
        small = statement.body[0]
        assert isinstance(small, cst.Assign)
        name = code(small.targets[0].target)
        uses = sum(name in read(s) for block, _ in blocks(module) for s in body(block) if isinstance(s, cst.SimpleStatementLine))
        if uses > 1:
            raise NotUnderstoodError(f"{name} holds parameters of torch, and is used for more than an optimizer", statement)


def _group(node: cst.BaseExpression, value: object) -> tuple[str, str, str] | None:
    """Module, condition and weight decay of `{"params": [p for p in model.parameters() if …], "weight_decay": …}`."""
    if not isinstance(node, cst.Dict):
        return None
    entries = {code(e.key).strip("\"'"): e.value for e in node.elements if isinstance(e, cst.DictElement)}
    if set(entries) != {"params", "weight_decay"}:
        return None
    chosen = value(entries["params"])  # type: ignore[operator]
    if not isinstance(chosen, cst.ListComp):
        return None
    loop = chosen.for_in
    if isinstance(loop.target, cst.Tuple):
        return _named_group(chosen, code(entries["weight_decay"]))
    model = parameters_of(loop.iter)
    if model is None or code(chosen.elt) != code(loop.target) or len(loop.ifs) != 1:
        return None
    condition = _condition(loop.ifs[0].test, code(loop.target))
    return (model, condition, code(entries["weight_decay"])) if condition else None


def _named_group(chosen: cst.ListComp, weight_decay: str) -> tuple[str, str, str] | None:
    """The same of `[p for n, p in model.named_parameters() if …]`: a condition over `name` and `p`."""
    loop = chosen.for_in
    names = [code(element.value) for element in loop.target.elements] if isinstance(loop.target, cst.Tuple) else []
    model = parameters_of(loop.iter, "named_parameters")
    if model is None or len(names) != 2 or code(chosen.elt) != names[1] or len(loop.ifs) != 1:
        return None
    test = loop.ifs[0].test
    if rank := _condition(test, names[1]):
        return model, rank, weight_decay
    # Torch's last part of a name is another one here for weights alone, and of a parameter nothing but its rank is the same.
    weights = any("weight" in value for value in _strings(test))
    if weights or names[1] in read(test) or names[0] not in read(test):
        return None
    return model, _over_name(test, names[0]), weight_decay


def _over_name(test: cst.BaseExpression, name: str) -> str:
    class Put(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.Name:
            return ast.Name("name", node.ctx) if node.id == name else node

    return unparse(Put().visit(ast.parse(code(test), mode="eval")))


def _strings(node: cst.CSTNode) -> list[str]:
    return [one.value for one in ast.walk(parse(node)) if isinstance(one, ast.Constant) and isinstance(one.value, str)]


def _condition(test: cst.BaseExpression, name: str) -> str:
    """A comparison of a parameter's rank with a number, as text over `p`; "" for anything else."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        rank, _, rest = _condition(test.expression, name).partition(" ")
        operator, _, number = rest.partition(" ")
        return f"{rank} {OPPOSITE[operator]} {number}" if operator in OPPOSITE else ""
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return ""
    left, right = test.left, test.comparisons[0].comparator
    ranked = code(left) in (f"{name}.ndim", f"len({name}.shape)", *(f"{name}.{method}()" for method in RANK))
    return f"p.ndim {code(test.comparisons[0].operator).strip()} {code(right)}" if ranked and isinstance(right, cst.Integer) else ""


def _opposite(one: str, other: str) -> bool:
    """Whether each parameter satisfies exactly one of two conditions."""
    if "name" in (*names_in(one), *names_in(other)):
        texts = [ast.unparse(ast.parse(text, mode="eval")) for text in (one, other)]
        return texts[0] == _negated(texts[1]) or texts[1] == _negated(texts[0])
    return all(bool(eval(one, {}, {"p": _Rank(n)})) != bool(eval(other, {}, {"p": _Rank(n)})) for n in range(9))


def names_in(text: str) -> list[str]:
    """Names that an expression reads."""
    return [node.id for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Name)]


def _negated(text: str) -> str:
    return ast.unparse(ast.Expression(ast.UnaryOp(ast.Not(), ast.parse(text, mode="eval").body)))


@dataclass(frozen=True)
class _Rank:
    ndim: int
