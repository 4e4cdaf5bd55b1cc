"""Gradients of values with regard to inputs, inside of a computation: `torch.autograd.grad`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple, TypeVar

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule

PARAMETERS = ("outputs", "inputs", "grad_outputs", "retain_graph", "create_graph", "only_inputs", "allow_unused")
"""Those of `torch.autograd.grad` that are known here (https://pytorch.org/docs/stable/generated/torch.autograd.grad.html)."""


Node = TypeVar("Node", bound=cst.CSTNode)


class _Place(NamedTuple):
    """A call of `torch.autograd.grad` in a block: which statement it stands in, of which output, and with regard to which inputs.

    Where the output has no name ("") the `cotangent` is the output itself, a scalar.
    """

    statement: int
    call: cst.Call
    output: str
    inputs: tuple[str, ...]
    cotangent: cst.BaseExpression | None
    differentiable: bool


class DifferentiateInputs(Rule):
    """Compute gradients of inputs by `jax.vjp`: `y = f(x); g = torch.autograd.grad(y, x, …)[0]` → `y, pull_back = jax.vjp(f, x); …`.

    What leads from the inputs to the output becomes the function. Without `create_graph=True` nothing is differentiated through
    the gradient. Declines where these statements do not stand in one block, or do more than assign names.
    """

    KEEP = ("def f(x, grad):\n    y = x * 2\n    return grad(y, x)\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(d, x: torch.Tensor):\n    y = d(x)\n"
            "    g = torch.autograd.grad(outputs=y, inputs=x, grad_outputs=torch.ones_like(y), create_graph=True)[0]\n    return g\n",
            "def f(d, x: jax.Array):\n    y, pull_back = jax.vjp(d, x)\n    g = pull_back(jnp.ones_like(y))[0]\n    return g\n",
        ),
        (
            "import torch\n\ndef f(d, x: torch.Tensor):\n    h = x * 2\n    x\n    y = d(h)\n    (g,) = torch.autograd.grad(y.sum(), x)\n    return g\n",
            "def f(d, x: jax.Array):\n    def y_of(x):\n        h = x * 2\n        return d(h)\n\n    y, pull_back = jax.vjp(y_of, x)\n"
            "    (g,) = lax.stop_gradient(pull_back(jnp.ones_like(y)))\n    return g\n",
        ),
        (
            "import torch\n\ndef f(d, x: torch.Tensor):\n    (g,) = torch.autograd.grad((x * d).sum(), x, create_graph=True)\n    return g\n",
            "def f(d, x: jax.Array):\n    (g,) = jax.grad(lambda x: jnp.sum(x * d), argnums=(0,))(x)\n    return g\n",
        ),
        (
            "import torch\n\ndef f(d, x: torch.Tensor, t: torch.Tensor):\n    u = d(x, t)\n"
            "    u_x = torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)[0]\n"
            "    u_t = torch.autograd.grad(u, t, torch.ones_like(u), create_graph=True)[0]\n"
            "    u_xx = torch.autograd.grad(u_x.sum(), x, create_graph=True)[0]\n    return u_t - u_xx\n",
            "def f(d, x: jax.Array, t: jax.Array):\n    u, pull_back = jax.vjp(lambda x: d(x, t), x)\n\n"
            "    def u_x_of(x):\n        u, pull_back = jax.vjp(lambda x: d(x, t), x)\n        return pull_back(jnp.ones_like(u))[0]\n\n"
            "    u_x, pull_back_3 = jax.vjp(u_x_of, x)\n    _, pull_back_2 = jax.vjp(lambda t: d(x, t), t)\n"
            "    u_t = pull_back_2(jnp.ones_like(u))[0]\n    u_xx = pull_back_3(jnp.ones_like(u_x))[0]\n    return u_t - u_xx\n",
        ),
    )

    def leave_IndentedBlock(self, original: cst.IndentedBlock, updated: cst.IndentedBlock) -> cst.IndentedBlock | None:
        asked = [call for call in _calls(original) if self.context.dotted(call.func) == "torch.autograd.grad"]
        spelled = {_code(call.func) for call in asked}
        if not asked:
            return None
        body: list[Statement] = list(updated.body)
        known: dict[str, cst.BaseExpression] = {}
        free = (name for name in _pull_backs() if name not in self.context.taken)
        for _ in asked:
            site = next((site for number, statement in enumerate(body) for site in _places(number, statement, spelled)), None)
            new = _differentiated(body, site, known, next(free)) if site is not None else None
            if new is None:
                return None
            body = new
        self.context.drop_holes(*asked)
        return updated.with_changes(body=[statement for statement in body if not _only_marks(statement)])


def _pull_backs() -> Iterator[str]:
    yield "pull_back"
    yield from (f"pull_back_{number}" for number in count(2))


def _places(number: int, statement: cst.CSTNode, spelled: set[str]) -> Iterator[_Place]:
    if not isinstance(statement, cst.SimpleStatementLine):
        return
    for call in _calls(statement):
        if _code(call.func) in spelled and (site := _place(number, call)) is not None:
            yield site


def _place(number: int, call: cst.Call) -> _Place | None:
    given: dict[str, cst.BaseExpression] = {}
    for index, argument in enumerate(call.args):
        name = argument.keyword.value if argument.keyword else PARAMETERS[index] if index < len(PARAMETERS) else ""
        if argument.star or name not in PARAMETERS:
            return None
        given[name] = argument.value
    output, inputs = _output(given.get("outputs")), _several(given.get("inputs"))
    create = _code(given["create_graph"]) if "create_graph" in given else "False"
    if not inputs or create not in ("True", "False") or not {"outputs", "inputs"} <= given.keys():
        return None
    if not output and _only(given.get("grad_outputs")) is not None:
        return None
    summed = isinstance(given["outputs"], cst.Call)
    cotangent = given["outputs"] if not output else None if summed else _only(given.get("grad_outputs"))
    return _Place(number, call, output, inputs, cotangent, create == "True")


def _output(value: cst.BaseExpression | None) -> str:
    """`y` of `y`, `[y]`, `y.sum()` and `jnp.sum(y)`: the gradient of a sum is that of `y` with ones."""
    match value:
        case cst.Name(value=name):
            return name
        case cst.List(elements=[cst.Element(value=cst.Name(value=name))]) | cst.Tuple(elements=[cst.Element(value=cst.Name(value=name))]):
            return name
        case cst.Call(func=cst.Attribute(value=cst.Name(value=owner), attr=cst.Name(value="sum")), args=args):
            if owner == "jnp" and len(args) == 1 and isinstance(args[0].value, cst.Name):
                return args[0].value.value
            return owner if not args else ""
    return ""


def _several(value: cst.BaseExpression | None) -> tuple[str, ...]:
    """`x` of `x`, and `x` and `z` of `[x, z]`."""
    items = [item.value for item in value.elements] if isinstance(value, (cst.List, cst.Tuple)) else [value]
    names = tuple(item.value for item in items if isinstance(item, cst.Name))
    return names if len(names) == len(items) else ()


def _only(value: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """The one element of a list; `None` of `None`."""
    if isinstance(value, (cst.List, cst.Tuple)) and len(value.elements) == 1:
        return value.elements[0].value
    return None if value is None or _code(value) == "None" else value


Statement = cst.BaseStatement | cst.BaseSmallStatement


def _differentiated(
    body: Sequence[Statement], site: _Place, known: dict[str, cst.BaseExpression], pull_back: str
) -> list[Statement] | None:
    """The block with the gradient by a pull-back of that name; `None` where the way from the inputs to the output is not followed.

    `known` are the values of names whose gradients were taken with regard to something else, and gets that of the output.
    """
    before = body[: site.statement]
    if not site.output:
        return _of_expression(body, site)
    made = [number for number, statement in enumerate(before) if site.output in _bound(statement)]
    if len(made) != 1 or any(_bound(statement) & set(site.inputs) for statement in before[made[0] :]):
        return None
    start = max((number + 1 for number, statement in enumerate(before[: made[0]]) if _bound(statement) & set(site.inputs)), default=0)
    chain = _chain(body, start, made[0], site)
    again = site.output in known
    value = known[site.output] if again else _assigned(body[made[0]], site.output)
    if chain is None or value is None:
        return None
    known[site.output] = value
    # What gives other names too stays, and so does what was differentiated before.
    again = again or _bound(body[made[0]]) != {site.output}
    if again and _is_changed(body, [*chain, made[0]], value, site.statement):
        return None
    later = {name for number, statement in enumerate(body) if number > made[0] for name in _names(statement)}
    dropped = {number for number in chain if not _bound(body[number]) & (later - {site.output})} if not again else set()
    arguments = ", ".join(site.inputs)
    function: list[Statement] = []
    name = _function(value, site.inputs)
    if chain:
        name = f"{site.output}_of"
        inner = [*(body[number] for number in chain), cst.SimpleStatementLine([cst.Return(value)])]
        header = cst.ensure_type(cst.parse_statement(f"def {name}({arguments}):\n    pass"), cst.FunctionDef)
        function = [header.with_changes(body=cst.IndentedBlock(inner))]  # type: ignore[arg-type]
    made_line = cst.parse_statement(f"{'_' if again else site.output}, {pull_back} = jax.vjp({name}, {arguments})")
    lines = [cst.EmptyLine(indent=False)] if function else list(getattr(body[made[0]], "leading_lines", ()))
    made_line = cst.ensure_type(made_line, cst.SimpleStatementLine).with_changes(leading_lines=lines)
    new: list[Statement] = []
    for number, statement in enumerate(body):
        if number == made[0] and not again:
            new += [*function, made_line]
        elif number == site.statement:
            new += [*function, made_line] if again else []
            new.append(_with_pull_back(statement, site, pull_back))
        elif number not in dropped:
            new.append(statement)
    return new


def _is_changed(body: Sequence[Statement], chain: Sequence[int], value: cst.BaseExpression, end: int) -> bool:
    """Whether what a value is computed from gets another value between its computation and the statement `end`."""
    inner = [body[number] for number in chain[:-1]]
    needed = set[str]().union(_names(value), *map(_names, inner)) - set[str]().union(*map(_bound, inner))
    others = [body[number] for number in range(chain[0], end) if number not in chain[:-1]]
    return any(_bound(statement) & needed for statement in others)


def _of_expression(body: Sequence[Statement], site: _Place) -> list[Statement] | None:
    """The block with the gradient of a scalar expression; `None` where that reads what was computed of the inputs before."""
    assert site.cotangent is not None
    before = body[: site.statement]
    start = max((number + 1 for number, statement in enumerate(before) if _bound(statement) & set(site.inputs)), default=0)
    derived = {name for statement in before[start:] if _names(statement) & set(site.inputs) for name in _bound(statement)}
    if derived & _names(site.cotangent) or not set(site.inputs) <= _names(site.cotangent):
        return None
    arguments, sites = ", ".join(site.inputs), ", ".join(map(str, range(len(site.inputs))))
    sites += "," if len(site.inputs) == 1 else ""
    text = f"jax.grad(lambda {arguments}: {_code(site.cotangent)}, argnums=({sites}))({arguments})"
    new = body[site.statement].deep_replace(site.call, cst.parse_expression(text if site.differentiable else f"lax.stop_gradient({text})"))
    assert isinstance(new, (cst.BaseStatement, cst.BaseSmallStatement))
    return [*before, new, *body[site.statement + 1 :]]


def _function(value: cst.BaseExpression, inputs: Sequence[str]) -> str:
    """The function of these names that gives the value: `d` for `d(x)`."""
    plain = isinstance(value, cst.Call) and [_code(item.value) for item in value.args if not (item.keyword or item.star)] == list(inputs)
    if isinstance(value, cst.Call) and plain and len(value.args) == len(inputs) and not _names(value.func) & set(inputs):
        return _code(value.func)
    return f"lambda {', '.join(inputs)}: {_code(value)}"


def _chain(body: Sequence[Statement], start: int, end: int, site: _Place) -> list[int] | None:
    """The statements between that lead from the inputs to the output; `None` where one of them does more than assign names."""
    reached, chain = set(site.inputs), []
    for number in range(start, end):
        if not _free(body[number]) & reached or _only_marks(body[number]):
            continue
        if not _bound(body[number]) or not isinstance(body[number], (cst.SimpleStatementLine, cst.FunctionDef)):
            return None
        reached |= _bound(body[number])
        chain.append(number)
    return chain if _names(body[end]) & reached else None


def _free(statement: Statement) -> set[str]:
    """The names that a statement needs; of a function, those that are not its own."""
    if not isinstance(statement, cst.FunctionDef):
        return _names(statement)
    own = {one.name.value for one in statement.params.params}.union(*map(_bound, statement.body.body))
    return _names(statement.body) - own


def _only_marks(statement: Statement) -> bool:
    """Whether a statement only says that gradients will be asked for: `x.requires_grad_(True)`, of which `x` may be left."""
    match statement:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.Name())]):
            return True
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.Call(func=cst.Attribute(value=cst.Name(), attr=cst.Name(value=name))))]):
            return name in ("requires_grad_", "retain_grad")
    return False


def _with_pull_back(statement: Statement, site: _Place, pull_back: str) -> Statement:
    cotangent = _code(site.cotangent) if site.cotangent is not None else f"jnp.ones_like({site.output})"
    text = f"{pull_back}({cotangent})" if site.differentiable else f"lax.stop_gradient({pull_back}({cotangent}))"
    new = statement.deep_replace(site.call, cst.parse_expression(text))
    assert isinstance(new, (cst.BaseStatement, cst.BaseSmallStatement))
    return new


def _assigned(statement: Statement, name: str) -> cst.BaseExpression | None:
    """The value of `name = value`, also beside others: `name, other = value, more`."""
    match statement:
        case cst.SimpleStatementLine(
            body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=names))], value=cst.Tuple(elements=values))]
        ):
            pairs = zip(names, values, strict=False) if len(names) == len(values) else ()
            return next((one.value for target, one in pairs if _code(target.value) == name), None)
        case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=target))], value=value)]):
            return value if target == name else None
    return None


def _bound(statement: Statement) -> set[str]:
    """The names that a statement assigns; those in the inside of a compound statement count too."""
    if isinstance(statement, cst.FunctionDef):
        return {statement.name.value}
    found: set[str] = set()
    for target in _nodes(statement, cst.AssignTarget):
        found |= _names(target) if isinstance(target.target, (cst.Name, cst.Tuple, cst.List)) else set()
    kinds: tuple[type[Any], ...] = (cst.AugAssign, cst.AnnAssign, cst.For)
    changed = [node.target for kind in kinds for node in _nodes(statement, kind)]
    for changed_target in changed:
        found |= _names(changed_target)
    return found


def _names(node: cst.CSTNode) -> set[str]:
    """The names in a node, attributes and keywords left out."""
    visitor = _Names()
    node.visit(visitor)
    return visitor.found


class _Names(cst.CSTVisitor):
    def __init__(self) -> None:
        self.found: set[str] = set()

    def visit_Name(self, node: cst.Name) -> None:
        self.found.add(node.value)

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        self.found |= _names(node.value)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        self.found |= _names(node.value)
        return False


def _nodes(node: cst.CSTNode, kind: type[Node]) -> Iterator[Node]:
    if isinstance(node, kind):
        yield node
    for child in node.children:
        yield from _nodes(child, kind)


def _calls(node: cst.CSTNode) -> Iterator[cst.Call]:
    return _nodes(node, cst.Call)


def _code(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)
