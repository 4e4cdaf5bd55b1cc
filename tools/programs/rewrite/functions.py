"""Writes `loss_fn` and `train_step` for the training step of a script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from migrate_agent.tools.programs.rewrite.core import Core, NotUnderstoodError, blocks, body, call_of, called
from migrate_agent.tools.programs.rewrite.names import bound, code, read


@dataclass(frozen=True)
class Step:
    """The names of a training step: what it takes beside model and optimizer, and what it gives.

    `loss` is the name of the loss ("" where the loop has none for it), `outputs` further results that the loop uses, `norm` a gradient norm.
    """

    model: str
    optimizer: str
    inputs: tuple[str, ...]
    loss: str
    outputs: tuple[str, ...]
    norm: str = ""
    anchor: cst.CSTNode | None = None
    """The statement before which the functions stand."""
    loop: cst.CSTNode | None = None
    """The statement of its function that holds the loop."""
    static: tuple[str, ...] = ()
    """Inputs that are no arrays: another value is another program."""

    @property
    def results(self) -> tuple[str, ...]:
        """What the step gives back, in order."""
        return (*([self.loss] if self.loss else []), *self.outputs, *([self.norm] if self.norm else []))


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
    if any(isinstance(statement, cst.ClassDef) for statement in inside) or len(functions) > 1 or not inside:
        raise NotUnderstoodError("the training step stands in a class or in a function of a function")
    varying = frozenset(name for i in loops for name in bound(inside[i]))
    if not functions:
        return Scope(varying, frozenset(), inside[0], inside[0], False)
    function = inside[functions[0]]
    assert isinstance(function, cst.FunctionDef)
    names = {param.name.value for param in function.params.params} | {name for line in function.body.body for name in bound(line)}
    if not loops:
        raise NotUnderstoodError("the training step is a function of its own, called once a step", function)
    return Scope(varying, frozenset(names - varying), inside[0], inside[loops[0]], _repeated(module, function.name.value))


def _repeated(module: cst.Module, name: str) -> bool:
    """Whether a function is called in several places, or in a loop."""
    calls = [
        inside for block, inside in blocks(module) for s in body(block) if isinstance(s, cst.SimpleStatementLine) and name in called(s)
    ]
    return len(calls) != 1 or any(isinstance(statement, (cst.For, cst.While, cst.FunctionDef)) for statement in calls[0])


DATA = ("tensor", "int", "float", "module:")
STATIC = ("bool", "str", "none", "function:")
"""Prefixes of kinds of names that a step can take from a function that is called again and again."""


def plan_step(core: Core, outside: Sequence[cst.CSTNode], scope: Scope, kinds: Mapping[str, frozenset[str]]) -> Step:
    """The names of the step. `outside` are the statements of the program around it, `kinds` what names were seen to hold."""
    if len(core.models) != 1:
        raise NotUnderstoodError(f"the loss depends on several modules ({', '.join(core.models)})", core.backward)
    made = dict.fromkeys(name for statement in core.slice for name in bound(statement))
    used = {name for statement in outside for name in read(statement)}
    needed: dict[str, None] = {}
    known: set[str] = set()
    varying = [name for clip in core.clips for name in read(clip) if name in scope.varying]
    if core.accumulates and varying:
        raise NotUnderstoodError(f"gradients that add up are clipped by what differs from step to step ({', '.join(varying)})", core.step)
    for statement in [*core.slice, core.loss, *core.clips]:
        needed |= dict.fromkeys(name for name in read(statement) if name not in known)
        known |= set(bound(statement)) if not isinstance(statement, cst.BaseExpression) else set()
    norms = [name for clip in core.clips for name in bound(clip)]
    loss = core.loss.value if isinstance(core.loss, cst.Name) else ""
    inputs = tuple(name for name in needed if name in scope.varying and name not in core.models)
    closure = [name for name in needed if name in scope.fixed and name not in core.models]
    static: tuple[str, ...] = ()
    if closure and scope.repeated:
        # Functions that are defined in it would be compiled with each call of it.
        unknown = [name for name in closure if not _all(kinds.get(name), (*DATA, *STATIC))]
        if unknown:
            raise NotUnderstoodError(f"the step uses {', '.join(unknown)} of a function that is called again and again", core.backward)
        static = tuple(name for name in closure if not _all(kinds.get(name), DATA))
        inputs, closure = (*inputs, *closure), []
    outputs = tuple(name for name in made if name in used and name != loss)
    return Step(
        core.models[0],
        core.optimizer,
        inputs,
        loss if loss in used else "",
        outputs,
        next((n for n in norms if n in used), ""),
        scope.inner if closure else scope.outer,
        scope.inner,
        static,
    )


def _all(kinds: frozenset[str] | None, prefixes: tuple[str, ...]) -> bool:
    return bool(kinds) and all(kind.startswith(prefixes) for kind in kinds or ())


def loss_function(core: Core, step: Step, statements: Sequence[cst.CSTNode], loss: cst.BaseExpression, name: str) -> cst.FunctionDef:
    """`def loss_fn(model, x, y): …`, which gives the loss and, where the loop uses more, a tuple of that."""
    statements = list(statements)
    if not step.outputs and (value := _value_of_last(statements, loss)) is not None:
        statements, loss = statements[:-1], value
    result = loss if not step.outputs else cst.Tuple([cst.Element(loss), cst.Element(_tuple(step.outputs))], lpar=[], rpar=[])
    lines = [*statements, cst.SimpleStatementLine([cst.Return(result)])]
    return cst.FunctionDef(cst.Name(name), _parameters((step.model, *step.inputs)), cst.IndentedBlock(lines))  # type: ignore[arg-type]


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


def step_function(core: Core, step: Step, loss_name: str, name: str) -> cst.BaseStatement:
    """`def train_step(model, optimizer, x, y): …`, compiled, with the memory of model and optimizer given over to the new ones."""
    arguments = ", ".join((step.model, *step.inputs))
    loss = step.loss or "loss"
    value = (
        f"({loss}, {code(_tuple(step.outputs)) if len(step.outputs) == 1 else '(' + ', '.join(step.outputs) + ')'})"
        if step.outputs
        else loss
    )
    auxiliary = ", has_aux=True" if step.outputs else ""
    lines = [f"{value}, grads = nnx.value_and_grad({loss_name}{auxiliary})({arguments})"]
    lines += [_clip(clip, step) for clip in core.clips]
    lines += [f"{step.optimizer}.update({step.model}, grads)"]
    lines += [f"return {', '.join(step.results)}"] if step.results else []
    parameters = ", ".join((step.model, step.optimizer, *step.inputs))
    static = f", static_argnames={step.static!r}" if step.static else ""
    head = f'@nnx.jit(donate_argnames=("{step.model}", "{step.optimizer}"){static})\ndef {name}({parameters}):\n'
    return cst.parse_statement(head + "".join(f"    {one}\n" for one in lines))


def accumulate_function(step: Step, loss_name: str) -> cst.BaseStatement:
    """`def accumulate(model, grads, x, y): …`, which adds the gradients of one batch to those before it."""
    results = step.results if not step.norm else step.results[:-1]
    loss = step.loss or "loss"
    outputs = step.outputs[0] if len(step.outputs) == 1 else f"({', '.join(step.outputs)})"
    value, auxiliary = (f"({loss}, {outputs})", ", has_aux=True") if step.outputs else (loss, "")
    static = f", static_argnames={step.static!r}" if step.static else ""
    return cst.parse_statement(
        f'@nnx.jit(donate_argnames=("grads",){static})\n'
        f"def accumulate({', '.join((step.model, 'grads', *step.inputs))}):\n"
        f"    {value}, new = nnx.value_and_grad({loss_name}{auxiliary})({', '.join((step.model, *step.inputs))})\n"
        f"    return {', '.join(('jax.tree.map(jnp.add, grads, new)', *results))}\n"
    )


def apply_function(core: Core, step: Step) -> cst.BaseStatement:
    """`def apply_gradients(model, optimizer, grads): …`: clipping and the update."""
    lines = [*(_clip(clip, step) for clip in core.clips), f"{step.optimizer}.update({step.model}, grads)"]
    lines += [f"return {step.norm}"] if step.norm else []
    head = f'@nnx.jit(donate_argnames=("{step.model}", "{step.optimizer}"))\ndef apply_gradients({step.model}, {step.optimizer}, grads):\n'
    return cst.parse_statement(head + "".join(f"    {line}\n" for line in lines))


def accumulated_calls(step: Step) -> tuple[str, str, str]:
    """What stands in the place of `backward()`, of the step, and of `zero_grad()`."""
    results = step.results if not step.norm else step.results[:-1]
    add = f"{', '.join(('grads', *results))} = accumulate({', '.join((step.model, 'grads', *step.inputs))})"
    update = f"{step.norm} = " if step.norm else ""
    return add, f"{update}apply_gradients({step.model}, {step.optimizer}, grads)", f"grads = zero_gradients({step.model})"


def _clip(statement: cst.CSTNode, step: Step) -> str:
    call = call_of(statement)
    assert call is not None
    function = call.func.attr.value if isinstance(call.func, cst.Attribute) else code(call.func)
    options = [
        code(argument.value)
        for argument in call.args[1:]
        if argument.keyword is None or argument.keyword.value in ("max_norm", "clip_value")
    ]
    kinds = [a for a in call.args[1:] if a.keyword is not None and a.keyword.value not in ("max_norm", "clip_value", "foreach")]
    over = code(call.args[0].value)
    if len(options) != 1 or kinds or over != f"{step.model}.parameters()":
        raise NotUnderstoodError("gradients are clipped in a way that no rule covers", statement)
    if function == "clip_grad_value_":
        return f"grads = jax.tree.map(lambda g: jnp.clip(g, -{options[0]}, {options[0]}), grads)"
    names = bound(statement)
    return f"grads, {names[0] if names else '_'} = clip_grad_norm(grads, {options[0]})"


def call_statement(step: Step, name: str) -> cst.BaseStatement:
    """`loss, logits = train_step(model, optimizer, x, y)`."""
    call = f"{name}({', '.join((step.model, step.optimizer, *step.inputs))})"
    return cst.parse_statement(f"{', '.join(step.results)} = {call}" if step.results else call)
