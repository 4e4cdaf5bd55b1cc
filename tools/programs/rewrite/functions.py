"""Writes `loss_fn` and `train_step` for the training step of a script."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst

from migrate_agent.tools.programs.rewrite.core import (
    Core,
    NotUnderstoodError,
    binds_alone,
    blocks,
    body,
    call_of,
    called,
    changed,
    given_by_clip,
    method_of,
)
from migrate_agent.tools.programs.rewrite.names import SELF, FreeNames, Rename, bound, chains, code, exposed, gives, name_of, parse, read
from migrate_agent.tools.programs.rewrite.passes.gradient_loops import gradient_loop
from migrate_agent.tools.programs.rewrite.passes.listed_parameters import listed_modules


@dataclass(frozen=True)
class Share:
    """What an optimizer updates: a module of the loss, or the part of it that the attributes `path` lead to; `name` is what it is called where the
    optimizer is constructed. `whole`: the module has no other parameters.
    """

    module: str
    path: tuple[str, ...]
    name: str
    whole: bool

    def updated(self, names: Mapping[str, str]) -> str:
        """The text of what is updated, with other names for some modules."""
        return ".".join((names.get(self.module, self.module), *self.path))

    @property
    def place(self) -> str:
        """Where its gradients are among those of the module."""
        return "".join(f'["{name}"]' for name in self.path)


@dataclass(frozen=True)
class Step:
    """The names of a training step: the modules whose gradients it takes, the optimizers, what it takes beside them, and what it gives.

    `shares` say of each optimizer what it updates. `loss` is the name of the loss ("" where the loop has none for it), `outputs` further results that
    the loop uses, `norms` those of gradients. `loss_name` and `name` are those of its functions.
    """

    models: tuple[str, ...]
    optimizers: tuple[str, ...]
    inputs: tuple[str, ...]
    loss: str
    outputs: tuple[str, ...]
    norms: tuple[str, ...] = ()
    anchor: cst.CSTNode | None = None
    """The statement before which the functions stand."""
    loop: cst.CSTNode | None = None
    """The statement of its function that holds the loop."""
    static: tuple[str, ...] = ()
    """Inputs that are no arrays: another value is another program."""
    unread: frozenset[str] = frozenset()
    """Inputs that the loss does not read."""
    names: Mapping[str, str] = field(default_factory=dict)
    """What is an attribute in the loop, and its name in the functions: `self.model` → `model`."""
    loss_name: str = "loss_fn"
    name: str = "train_step"
    accumulate: str = "accumulate"
    apply: str = "apply_gradients"
    trainable: tuple[str, ...] = ()
    """The filter of the parameters of each module that are updated; "" for all."""
    shares: tuple[Share, ...] = ()

    @property
    def results(self) -> tuple[str, ...]:
        """What the step gives back, in order."""
        return (*([self.loss] if self.loss else []), *self.outputs, *self.norms)

    @property
    def gradients(self) -> tuple[str, ...]:
        """The names of the gradients of each module."""
        return ("grads",) if len(self.models) == 1 else tuple(f"{model}_grads" for model in self.inner(self.models))

    def inner(self, names: Sequence[str]) -> tuple[str, ...]:
        """Names of the loop as the functions have them."""
        return tuple(self.names.get(name, name) for name in names)

    def renamed(self, node: cst.CSTNode) -> cst.CSTNode:
        """A piece of the loop as the functions have it."""
        new = node.visit(Rename(self.names)) if self.names else node
        assert isinstance(new, cst.CSTNode)
        return new

    @property
    def updates(self) -> list[str]:
        """The lines that update the modules, or parts of them."""
        grads = dict(zip(self.models, self.gradients, strict=True))
        rows = zip(self.inner(self.optimizers), self.shares, strict=True)
        return [f"{name}.update({share.updated(self.names)}, {grads[share.module]}{self._place(share)})" for name, share in rows]

    def _place(self, share: Share) -> str:
        """Where the gradients of a part are among those of its module; "" where there are no others any more."""
        return "" if self._is_alone(share) else share.place

    def _is_alone(self, share: Share) -> bool:
        return sum(other.module == share.module for other in self.shares) == 1

    @property
    def chosen(self) -> list[str]:
        """The lines that leave the gradients of a part alone which is all that is updated of its module."""
        grads = dict(zip(self.models, self.gradients, strict=True))
        rows = [(grads[share.module], share) for share in self.shares if share.path and self._is_alone(share)]
        return [f"{name} = {name}{share.place}" for name, share in rows]

    @property
    def clipped(self) -> dict[str, str]:
        """A module whose parameters are listed → their gradients."""
        grads = dict(zip(self.models, self.gradients, strict=True))
        own = {share.name: grads[share.module] for share in self.shares if self._is_alone(share)}
        return own | {share.module: grads[share.module] for share in self.shares if share.whole}

    @property
    def decorator(self) -> str:
        """The line that compiles a function which takes the modules and the optimizers."""
        names = ", ".join(f'"{name}"' for name in self.inner((*self.models, *self.optimizers)))
        static = f", static_argnames={self.inner(self.static)!r}" if self.static else ""
        return f"@nnx.jit(donate_argnames=({names}){static})"

    @property
    def loss_inputs(self) -> tuple[str, ...]:
        """What the loss takes beside the modules."""
        return tuple(name for name in self.inputs if name not in self.unread)

    def value_and_grad(self) -> str:
        """The expression of the loss and its gradients."""
        filters = self.trainable or ("",) * len(self.models)
        numbers = [f"nnx.DiffState({number}, {text})" if text else str(number) for number, text in enumerate(filters)]
        options = f", argnums=({', '.join(numbers)})" if len(numbers) > 1 else f", argnums={numbers[0]}" if filters[0] else ""
        options += ", has_aux=True" if self.outputs else ""
        return f"nnx.value_and_grad({self.loss_name}{options})({', '.join(self.inner((*self.models, *self.loss_inputs)))})"

    def value(self) -> str:
        """What the loss and its further values are assigned to."""
        loss, names = self.names.get(self.loss, self.loss) or "loss", self.inner(self.outputs)
        # What is a part of the loss, or a multiple of it, may have the name itself.
        loss = "_" if loss in names else loss
        outputs = names[0] if len(names) == 1 else f"({', '.join(names)})"
        return f"({loss}, {outputs})" if self.outputs else loss


@dataclass(frozen=True)
class Scope:
    """Where a step stands: names that may differ from one step to the next, names of its function that do not, and where functions may be defined.

    `outer` is the statement of the file, `inner` that of the function, which hold the loop. `repeated`: the function is called several times.
    """

    varying: frozenset[str]
    fixed: frozenset[str]
    outer: cst.CSTNode
    inner: cst.CSTNode
    repeated: bool


def scope_of(module: cst.Module, inside: Sequence[cst.CSTNode]) -> Scope:
    """The scope of the innermost block of `inside`. Raises `NotUnderstoodError` where the step stands in no loop."""
    functions = [i for i, statement in enumerate(inside) if isinstance(statement, cst.FunctionDef)]
    loops = [i for i, statement in enumerate(inside) if isinstance(statement, (cst.For, cst.While)) and i > max(functions, default=-1)]
    if len(functions) > 1 or not inside:
        raise NotUnderstoodError("the training step stands in a function of a function")
    varying = frozenset(name for i in loops for name in bound(inside[i]))
    if not functions:
        return Scope(varying, frozenset(), inside[0], inside[0], False)
    function = inside[functions[0]]
    assert isinstance(function, cst.FunctionDef)
    names = {param.name.value for param in function.params.params} | {name for line in function.body.body for name in bound(line)}
    if not loops:
        # A function that is one step: all that it is handed may differ from one call to the next.
        return Scope(frozenset(names), frozenset(), inside[0], function, True)
    # A method's object may be another one with each call.
    repeated = any(isinstance(statement, cst.ClassDef) for statement in inside) or called_again(module, function.name.value)
    return Scope(varying, frozenset(names - varying), inside[0], inside[loops[0]], repeated)


def closure_scope(inside: Sequence[cst.CSTNode]) -> Scope:
    """The scope of a closure: what loops around it bind, and what it binds itself, may differ from one step to the next."""
    functions = [i for i, statement in enumerate(inside) if isinstance(statement, cst.FunctionDef)]
    if len(functions) > 2 or any(isinstance(statement, cst.ClassDef) for statement in inside):
        raise NotUnderstoodError("a closure of a method has no rule", inside[-1])
    first = functions[0] + 1 if len(functions) > 1 else 0
    loops = [i for i, statement in enumerate(inside) if isinstance(statement, (cst.For, cst.While)) and i >= first]
    varying = frozenset(name for i in (*loops, len(inside) - 1) for name in bound(inside[i])) | _bound_in(inside[-1])
    names = {name for i in functions[:-1] for name in _names_of(inside[i])}
    inner = inside[loops[0]] if loops else inside[first]
    return Scope(varying, frozenset(names - varying), inside[0], inner, False)


def _names_of(function: cst.CSTNode) -> set[str]:
    assert isinstance(function, cst.FunctionDef)
    return {param.name.value for param in function.params.params} | _bound_in(function)


def _bound_in(function: cst.CSTNode) -> frozenset[str]:
    assert isinstance(function, cst.FunctionDef)
    return frozenset(name for line in function.body.body for name in bound(line))


def called_again(module: cst.Module, name: str) -> bool:
    """Whether a function is called in several places, or in a loop."""
    calls = [
        inside for block, inside in blocks(module) for s in body(block) if isinstance(s, cst.SimpleStatementLine) and name in called(s)
    ]
    return len(calls) != 1 or any(isinstance(statement, (cst.For, cst.While, cst.FunctionDef)) for statement in calls[0])


DATA = ("tensor", "int", "float", "module:")
STATIC = ("bool", "str", "none", "function:")
"""Prefixes of kinds of names that a step can take from a function that is called again and again."""


def plan_step(
    core: Core,
    outside: Sequence[cst.CSTNode],
    scope: Scope,
    kinds: Mapping[str, frozenset[str]],
    others_of: Sequence[Core] = (),
    free: FreeNames | None = None,
    alone: bool = True,
) -> Step:
    """The names of the step. `outside` are the statements of the program around it, `kinds` what names were seen to hold, `others_of` further steps
    of its function. Where it is not `alone` in the program, its functions are named after its modules.
    """
    ends = isinstance(scope.inner, cst.FunctionDef) and scope.inner.body is core.block
    fetched = [name for statement in core.fetched for name in bound(statement)]
    made = dict.fromkeys([*(name for statement in core.slice for name in (*gives(statement), *changed(statement))), *fetched])
    used = {name for statement in outside for name in _value_read(statement)} | {*fetched, *_carried(core, made)}
    conditions = [clip.test for clip in core.clips if isinstance(clip, cst.If)]
    if changing := [name for test in conditions for name in read(test) if name in scope.varying and not _all(kinds.get(name), STATIC)]:
        raise NotUnderstoodError(f"gradients are clipped where {min(changing)} says so, which differs from step to step", core.clips[0])
    varying = [name for clip in core.clips for name in exposed(clip) if name in scope.varying]
    if core.accumulates and varying:
        raise NotUnderstoodError(
            f"gradients that add up are clipped by what differs from step to step ({', '.join(varying)})", core.steps[0]
        )
    needed = [name for name in _inputs(core) if name in core.models or name not in core.held]
    norms = [name for clip in core.clips for name in given_by_clip(clip)]
    loss = name_of(core.losses[0]) if len(core.losses) == 1 else ""
    others = [name for name in needed if name in core.models and name not in core.owners]
    inputs = (*others, *(name for name in needed if name in scope.varying and name not in core.models))
    closure = [name for name in needed if (name in scope.fixed or name.startswith(f"{SELF}.")) and name not in (*core.models, *inputs)]
    static = tuple(name for name in inputs if _all(kinds.get(name), STATIC))
    if closure and scope.repeated:
        # Functions that are defined in it would be compiled with each call of it.
        closure = [one for name in closure for one in _values(core, name, kinds)]
        static += tuple(name for name in closure if not _all(kinds.get(name), DATA))
        inputs, closure = (*inputs, *closure), []
    _refuse_conditions(core, [name for name in inputs if name not in static], kinds)
    every = (*core.owners, *core.optimizers, *inputs, *made)
    names = _inner_names(every, {name for statement in core.slice for name in read(statement)})
    suffix = "_and_".join(names.get(owner, owner) for owner in dict.fromkeys(core.owners))
    return Step(
        tuple(dict.fromkeys(core.owners)),
        tuple(core.optimizers),
        inputs,
        loss if loss in used or loss.startswith(f"{SELF}.") else "",
        tuple(
            name
            for name in made
            if name in used and name != loss and (name in fetched or name in _carried(core, made) or _outlives(core, name, others_of, ends))
        ),
        tuple(name for name in norms if name in used),
        scope.inner if closure else scope.outer,
        scope.inner,
        static,
        frozenset(name for name in inputs if not any(chains(node, name) for node in (*core.slice, *core.losses))),
        names,
        *_function_names("" if alone else suffix, free or FreeNames("")),
        shares=tuple(Share(*row) for row in zip(core.owners, core.paths, core.held, core.alone, strict=True)),
    )


PYTHON = ("int", "float", "list", "tuple", "dict")
"""Prefixes of kinds of values of Python that have no value inside of a compiled step, or whose elements have none."""


def _refuse_conditions(core: Core, inputs: Sequence[str], kinds: Mapping[str, frozenset[str]]) -> None:
    """Refuse conditions of a step on numbers of Python that it is handed: compiled, it has none of their values."""
    numbers = {name for name in inputs if _all(kinds.get(name), PYTHON)}
    for statement in core.slice:
        tests = [node.test for node in ast.walk(parse(statement)) if isinstance(node, (ast.If, ast.While, ast.IfExp))]
        if names := sorted(numbers & {name for test in tests for name in _asked(test)}):
            raise NotUnderstoodError(
                f"a condition in the middle of the step asks for the value of {names[0]}: ask before the step", statement
            )


def _asked(test: ast.AST) -> Iterator[str]:
    """Names whose values a condition needs: not those whose length, class or absence it asks for."""
    length = isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id in ("len", "isinstance", "hasattr", "callable")
    absence = isinstance(test, ast.Compare) and all(isinstance(operator, (ast.Is, ast.IsNot)) for operator in test.ops)
    if isinstance(test, ast.Name):
        yield test.id
    for child in ast.iter_child_nodes(test) if not length and not absence else ():
        yield from _asked(child)


def _carried(core: Core, made: Collection[str]) -> set[str]:
    """Names whose values one step makes for the next: the step reads them first, and nothing in its block gives them others before."""
    lines = list(body(core.block))
    losses = dict(zip(core.backwards, core.losses, strict=True))

    def is_given(name: str) -> bool:
        first = next(
            (i for i, line in enumerate(lines) if (line in core.slice or line in losses) and name in read(losses.get(line, line))), 0
        )
        return any(name in bound(line) for line in lines[:first] if line not in core.slice)

    return {name for name in _inputs(core) if name in made and not is_given(name)}


def _function_names(suffix: str, free: FreeNames) -> tuple[str, str, str, str]:
    """Names of the loss, of the step, of what adds gradients up, and of what applies them."""
    if suffix:
        return (
            free.pick(f"{suffix}_loss", f"compute_{suffix}_loss"),
            free.pick(f"train_{suffix}", f"update_{suffix}"),
            free.pick(f"accumulate_{suffix}"),
            free.pick(f"apply_{suffix}_gradients"),
        )
    return (
        free.pick("loss_fn", "compute_loss", "batch_loss"),
        free.pick("train_step", "update_step", "compiled_step"),
        free.pick("accumulate", "add_gradients"),
        free.pick("apply_gradients", "update_with_gradients"),
    )


def _values(core: Core, name: str, kinds: Mapping[str, frozenset[str]]) -> list[str]:
    """A name that the step can take; of an object, those of its attributes that the step uses. Raises `NotUnderstoodError` for other objects."""
    if _all(kinds.get(name), (*DATA, *STATIC)):
        return [name]
    nodes = [*core.slice, *core.losses, *core.clips]
    parts = list(dict.fromkeys(one for node in nodes for one in chains(node, name)))
    if not parts or not all(_all(kinds.get(part), (*DATA, *STATIC)) for part in parts):
        raise NotUnderstoodError(f"the step uses {name} of a function that is called again and again", core.backwards[0])
    return parts


def _inner_names(names: Sequence[str], taken: set[str]) -> dict[str, str]:
    """Names for attributes in functions: their last part, unless that means something else there."""
    result: dict[str, str] = {}
    for name in dict.fromkeys(name for name in names if not name.isidentifier()):
        parts = re.findall(r"\w+", name.removeprefix(f"{SELF}."))
        clash = parts[-1] in taken or parts[-1] in names or parts[-1] in result.values() or not parts[-1].isidentifier()
        result[name] = "_".join(parts) if clash else parts[-1]
    return result


def _outlives(core: Core, name: str, others: Sequence[Core], ends: bool) -> bool:
    """Whether what a step gives a name may be read after it, before the name is bound anew. `ends`: the function's names end with the step's block."""
    if core.accumulates or name.startswith(f"{SELF}."):
        return True
    lines = list(body(core.block))
    firsts = {next(s for s in lines if s in other.gone and s not in other.zeros): other for other in others if other.block is core.block}
    gone = {s for other in others for s in (*other.gone, *other.fetched)}
    for statement in [*core.after, *(s for s in lines[lines.index(core.steps[-1]) + 1 :] if s not in gone or s in firsts)]:
        other = firsts.get(statement)
        if name in (_inputs(other) if other else _value_read(statement)):
            return True
        made = {n for s in (*other.slice, *other.fetched) for n in bound(s)} if other else {*_filled(statement)}
        if name in made or (other is None and binds_alone(statement) and name in bound(statement)):
            return False
    return not ends


def _filled(node: cst.CSTNode) -> list[str]:
    return changed(node) if method_of(node)[1] in ("fill_", "zero_") else []


def _inputs(core: Core) -> list[str]:
    """The names that the step reads before it binds them, in order."""
    needed: dict[str, None] = {}
    known: set[str] = set()
    losses = dict(zip(core.backwards, core.losses, strict=True))
    lines = list(body(core.block))
    for statement in [s for s in lines if s in (*core.slice, *core.fetched) or s in losses]:
        node = losses.get(statement, statement)
        names = read(node) if isinstance(node, cst.BaseExpression) else exposed(node)
        needed |= dict.fromkeys(name for name in names if name not in known)
        known |= set(gives(statement)) if statement not in losses else set()
    for clip in core.clips:
        needed |= dict.fromkeys(name for name in exposed(clip) if name not in known)
    return list(needed)


def _value_read(node: cst.CSTNode) -> list[str]:
    """Names whose values a statement uses: `label.fill_(1)` uses the shape of `label` alone."""
    names = read(node)
    filled = _filled(node)
    call = call_of(node)
    arguments = [name for argument in (call.args if call is not None else ()) for name in read(argument.value)]
    return [name for name in names if name not in filled or name in arguments]


def _all(kinds: frozenset[str] | None, prefixes: tuple[str, ...]) -> bool:
    return bool(kinds) and all(kind.startswith(prefixes) for kind in kinds or ())


def loss_function(step: Step, statements: Sequence[cst.CSTNode], losses: Sequence[cst.BaseExpression]) -> cst.FunctionDef:
    """`def loss_fn(model, x, y): …`, which gives the loss and, where the loop uses more, a tuple of that. Several losses add up."""
    statements, loss = list(statements), losses[0]
    for other in losses[1:]:
        loss = cst.BinaryOperation(loss, cst.Add(), other)
    if not step.outputs and (value := _value_of_last(statements, loss)) is not None:
        statements, loss = statements[:-1], value
    result = loss if not step.outputs else cst.Tuple([cst.Element(loss), cst.Element(_tuple(step.inner(step.outputs)))], lpar=[], rpar=[])
    lines = [*statements, cst.SimpleStatementLine([cst.Return(result)])]
    return cst.FunctionDef(cst.Name(step.loss_name), _parameters(step.inner((*step.models, *step.loss_inputs))), cst.IndentedBlock(lines))  # type: ignore[arg-type]


def _value_of_last(statements: Sequence[cst.CSTNode], loss: cst.BaseExpression) -> cst.BaseExpression | None:
    """The value that the last statement gives the loss, where it does nothing else."""
    last = statements[-1] if statements else None
    small = last.body[0] if isinstance(last, cst.SimpleStatementLine) and len(last.body) == 1 and not last.leading_lines else None
    if not isinstance(small, cst.Assign) or len(small.targets) != 1 or code(small.targets[0].target) != code(loss):
        return None
    return small.value


def _tuple(names: Sequence[str]) -> cst.BaseExpression:
    if len(names) == 1:
        return cst.Name(names[0])
    return cst.Tuple([cst.Element(cst.Name(name)) for name in names])


def _parameters(names: Sequence[str]) -> cst.Parameters:
    return cst.Parameters([cst.Param(cst.Name(name)) for name in names])


def step_function(core: Core, step: Step) -> cst.BaseStatement:
    """`def train_step(model, optimizer, x, y): …`, compiled, with the memory of model and optimizer given over to the new ones."""
    gradients = step.gradients[0] if len(step.gradients) == 1 else f"({', '.join(step.gradients)})"
    lines = [f"{step.value()}, {gradients} = {step.value_and_grad()}"]
    lines += step.chosen
    lines += _clips(core.clips, step)
    lines += step.updates
    lines += [f"return {', '.join(step.inner(step.results))}"] if step.results else []
    head = f"{step.decorator}\ndef {step.name}({', '.join(step.inner(_taken(step)))}):\n"
    return cst.parse_statement(head + "".join(f"    {one}\n" for one in lines))


def _taken(step: Step) -> tuple[str, ...]:
    return (*step.models, *step.optimizers, *step.inputs)


def closure_function(core: Core, step: Step) -> cst.BaseStatement:
    """`def loss_and_grads(model, x, y): …`, compiled: what an optimizer's closure asks for."""
    if step.outputs or step.norms or len(step.shares) != 1 or step.shares[0].path:
        raise NotUnderstoodError("a closure whose values are used for more than its loss has no rule", core.backwards[0])
    static = f"(static_argnames={step.inner(step.static)!r})" if step.static else ""
    parameters = ", ".join(step.inner((*step.models, *step.inputs)))
    if core.clips:
        lines = [f"loss, grads = {step.value_and_grad()}", *_clips(core.clips, step), "return loss, grads"]
    else:
        lines = [f"return {step.value_and_grad()}"]
    head = f"@nnx.jit{static}\ndef {step.name}({parameters}):\n"
    return cst.parse_statement(head + "".join(f"    {line}\n" for line in lines))


def closure_calls(core: Core, step: Step) -> tuple[list[str], str]:
    """What stands in the place of `backward()` and, where nothing stands between, of what the closure gives back; and in that of the step which it is
    handed to.
    """
    assert core.closure is not None
    loss, call = code(core.losses[0]), f"{step.name}({', '.join((*step.models, *step.inputs))})"
    lines = [f"{loss}, grads = {call}", f"return {loss}, grads"] if core.after else [f"return {call}"]
    return lines, f"{step.optimizers[0]}.update({step.models[0]}, {code(core.closure.args[0].value)})"


def accumulate_function(step: Step) -> cst.BaseStatement:
    """`def accumulate(model, grads, x, y): …`, which adds the gradients of one batch to those before it."""
    results = step.results[: len(step.results) - len(step.norms)]
    static = f", static_argnames={step.inner(step.static)!r}" if step.static else ""
    (model,) = step.inner(step.models)
    new = f"new{step.shares[0].place}"
    return cst.parse_statement(
        f'@nnx.jit(donate_argnames=("grads",){static})\n'
        f"def {step.accumulate}({', '.join((model, 'grads', *step.inner(step.inputs)))}):\n"
        f"    {step.value()}, new = {step.value_and_grad()}\n"
        f"    return {', '.join((f'jax.tree.map(jnp.add, grads, {new})', *step.inner(results)))}\n"
    )


def apply_function(core: Core, step: Step) -> cst.BaseStatement:
    """`def apply_gradients(model, optimizer, grads): …`: clipping and the update."""
    lines = [*_clips(core.clips, step), *step.updates]
    lines += [f"return {', '.join(step.inner(step.norms))}"] if step.norms else []
    model, optimizer = (*step.inner(step.models), *step.inner(step.optimizers))
    head = f'@nnx.jit(donate_argnames=("{model}", "{optimizer}"))\ndef {step.apply}({model}, {optimizer}, grads):\n'
    return cst.parse_statement(head + "".join(f"    {line}\n" for line in lines))


def accumulated_calls(step: Step) -> tuple[str, str, str]:
    """What stands in the place of `backward()`, of the step, and of `zero_grad()`."""
    model, optimizer = step.models[0], step.optimizers[0]
    results = step.results[: len(step.results) - len(step.norms)]
    add = f"{', '.join(('grads', *results))} = {step.accumulate}({', '.join((model, 'grads', *step.inputs))})"
    update = f"{', '.join(step.norms)} = " if step.norms else ""
    return add, f"{update}{step.apply}({model}, {optimizer}, grads)", f"grads = zero_gradients({step.shares[0].updated({})})"


def _clips(statements: Sequence[cst.CSTNode], step: Step) -> list[str]:
    """The lines that clip gradients, under their conditions."""
    lines: list[str] = []
    for statement in statements:
        if (loop := gradient_loop(step.renamed(statement))) is not None:
            grads = _clipped(gradient_loop(statement).parameters, step)  # type: ignore[union-attr]
            if grads is None:
                raise NotUnderstoodError("gradients are changed in a way that no rule covers", statement)
            lines.append(loop.line(grads))
        elif isinstance(statement, cst.If):
            inner = _clips(body(statement.body), step)
            lines += [f"if {code(step.renamed(statement.test))}:", *(f"    {line}" for line in inner)]
        else:
            lines.append(_clip(statement, step))
    return lines


def _clip(statement: cst.CSTNode, step: Step) -> str:
    call = call_of(statement)
    assert call is not None
    function = call.func.attr.value if isinstance(call.func, cst.Attribute) else code(call.func)
    options = [
        code(step.renamed(argument.value))
        for argument in call.args[1:]
        if argument.keyword is None or argument.keyword.value in ("max_norm", "clip_value")
    ]
    kinds = [a for a in call.args[1:] if a.keyword is not None and not _is_usual(a)]
    grads = _clipped(call.args[0].value, step)
    if len(options) != 1 or kinds or grads is None:
        raise NotUnderstoodError("gradients are clipped in a way that no rule covers", statement)
    if function == "clip_grad_value_":
        return f"{grads} = clip_grad_value({grads}, {options[0]})"
    names = bound(statement)
    return f"{grads}, {names[0] if names else '_'} = clip_grad_norm({grads}, {options[0]})"


def _is_usual(argument: cst.Arg) -> bool:
    """Whether an argument by name is a bound, or says what holds anyway."""
    name, value = argument.keyword.value if argument.keyword is not None else "", code(argument.value)
    return name in ("max_norm", "clip_value", "foreach") or (name, value) in (
        ("norm_type", "2"),
        ("norm_type", "2.0"),
        ("error_if_nonfinite", "False"),
    )


def _clipped(parameters: cst.BaseExpression, step: Step) -> str | None:
    """The gradients of the parameters that an expression lists: those of one module, or a tuple of those of several."""
    over = step.clipped
    models = listed_modules(parameters)
    grads = [over.get(model, "") for model in models or ()]
    if not grads or "" in grads or len(set(grads)) != len(grads):
        return None
    return grads[0] if len(grads) == 1 else f"({', '.join(grads)})"


def clip_helpers(core: Core) -> set[str]:
    """The helpers that clip the gradients of a step."""
    calls = [one.func for clip in core.clips for one in ast.walk(parse(clip)) if isinstance(one, ast.Call)]
    names = {ast.unparse(function).rpartition(".")[2] for function in calls}
    return {name.removesuffix("_") for name in names & {"clip_grad_norm_", "clip_grad_value_"}}


def call_statement(step: Step) -> cst.BaseStatement:
    """`loss, logits = train_step(model, optimizer, x, y)`."""
    call = f"{step.name}({', '.join(_taken(step))})"
    return cst.parse_statement(f"{', '.join(step.results)} = {call}" if step.results else call)
