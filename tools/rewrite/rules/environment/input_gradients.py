"""Gradients of values with regard to inputs, inside of a computation: `torch.autograd.grad`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple, TypeVar

import libcst as cst

from migrate_agent.tools.rewrite.analysis.autograd_functions.backward_calls import asked_gradients, is_asked
from migrate_agent.tools.rewrite.rules.rule import Rule

PARAMETERS = ("outputs", "inputs", "grad_outputs", "retain_graph", "create_graph", "only_inputs", "allow_unused")
"""Those of `torch.autograd.grad` that are known here (https://pytorch.org/docs/stable/generated/torch.autograd.grad.html)."""


ADDS = (
    "backward() adds to the gradients of parameters as well while the module runs, which no JAX function does; "
    "where only that of {owners} is wanted, ask for it: torch.autograd.grad(output, [{owners}])"
)

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
    created: cst.BaseExpression
    """Whether the gradient is differentiated further: `True`, `False`, or what decides it in Python, such as `self.training`."""

    def result(self, text: str) -> cst.BaseExpression:
        """The expression for the gradient of that text: it has no gradient of its own where torch makes no graph for it."""
        created = _code(self.created)
        if created == "True":
            return cst.parse_expression(text)
        stopped = f"lax.stop_gradient({text})"
        return cst.parse_expression(stopped if created in ("False", "None") else f"({text} if {created} else {stopped})")


class DifferentiateInputs(Rule):
    """Compute gradients of inputs by `jax.vjp`: `y = f(x); g = torch.autograd.grad(y, x, …)[0]` → `y, pull_back = jax.vjp(f, x); …`.

    What leads from the inputs to the output becomes the function; `y.backward()` and `x.grad` likewise. Without `create_graph=True` nothing
    is differentiated through the gradient. Declines where these statements do not stand in one block (the gradient itself may stand in a
    branch behind them), or do more than assign names.
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
        # Looking through every block of a large package would take longer than all other rules.
        if "grad" not in self.context.file.text and "backward" not in self.context.file.text:
            return None
        calls = [call for call in _calls(original) if self.context.dotted(call.func) == "torch.autograd.grad"]
        spelled = {_code(call.func) for call in calls} | {"torch.autograd.grad"}
        backward = asked_gradients(updated.body, self._arrays(original), self.context.taken)
        if backward is not None and not _sites(body := self._solved(original, backward.body, spelled), spelled):
            nodes = [node for node in (*_calls(original), *_nodes(original, cst.Attribute)) if is_asked(node, backward.owners)]
            self.context.drop_holes(*calls, *nodes)
            if not self._reads_parameters(original):
                return updated.with_changes(body=_without_marks(body))
            self.context.hole(nodes[0], ADDS.format(owners=", ".join(backward.owners)), "autograd")
            return None
        if not _sites(updated.body, spelled):
            return None
        body = self._solved(original, list(updated.body), spelled)
        if not _sites(body, spelled):
            self.context.drop_holes(*calls)
            body = _without_marks(body)
        return updated.with_changes(body=body)

    def _solved(self, original: cst.IndentedBlock, body: list[Statement], spelled: set[str]) -> list[Statement]:
        """A block with pull-backs for as many of its gradients as can be followed."""
        block = _Block(self._parameters(), self._around(original), self._is_repeated(), self._arrays(original))
        values: dict[str, cst.BaseExpression] = {}
        free = (name for name in _pull_backs() if name not in self.context.taken)
        changed = True
        while changed:
            pull_back = next(free)
            steps = (_differentiated(body, site, values, pull_back, block) for site in _sites(body, spelled))
            new = next((step for step in steps if step is not None), None)
            body, changed = new or body, new is not None
        return body

    def _reads_parameters(self, block: cst.IndentedBlock) -> bool:
        """Whether a block reads a module, a parameter, or a parameter's module, whose gradients `backward` would add to."""
        facts = [self.context.observed(node) for node in (*_nodes(block, cst.Name), *_nodes(block, cst.Attribute))]
        kinds = {kind for fact in facts if fact is not None for kind in fact.kinds}
        return any(kind.startswith(("module:", "parameter")) for kind in kinds) or any(map(self.context.is_self, _nodes(block, cst.Name)))

    def _around(self, block: cst.IndentedBlock) -> tuple[Statement, ...]:
        """The statements of the function around a block, without the block; none where it is the function's body."""
        function = self.context.functions[-1] if self.context.functions else None
        if function is None or function.body is block:
            return ()
        without = function.body.deep_replace(block, cst.IndentedBlock([cst.parse_statement("pass")]))
        assert isinstance(without, cst.IndentedBlock)
        return tuple(without.body)

    def _parameters(self) -> frozenset[str]:
        """The names of the function's parameters."""
        if not self.context.functions:
            return frozenset()
        parameters = self.context.functions[-1].params
        return frozenset(one.name.value for one in (*parameters.posonly_params, *parameters.params, *parameters.kwonly_params))

    def _is_repeated(self) -> bool:
        """Whether a loop of the function runs the block at hand."""
        kinds = [node for node in self.context.stack if isinstance(node, (cst.For, cst.While, cst.FunctionDef))]
        return bool(kinds) and not isinstance(kinds[-1], cst.FunctionDef)

    def _arrays(self, block: cst.IndentedBlock) -> frozenset[str]:
        """The names that a block was seen to assign nothing but arrays."""
        kinds: dict[str, set[str]] = {}
        for one in _nodes(block, cst.Assign):
            fact = self.context.observed(one.value)
            for target in one.targets:
                if isinstance(target.target, cst.Name):
                    kinds.setdefault(target.target.value, set()).update(fact.kinds if fact is not None else ("",))
        return frozenset(name for name, observed_kinds in kinds.items() if observed_kinds == {"tensor"})


def _without_marks(body: Sequence[Statement]) -> list[Statement]:
    return [statement for statement in body if not _only_marks(statement)]


class _Block(NamedTuple):
    """What is known of a block: its function's parameters, the statements around it, whether a loop repeats it, and the names that it assigns
    nothing but arrays."""

    parameters: frozenset[str]
    around: tuple[Statement, ...]
    repeated: bool
    arrays: frozenset[str]


def _pull_backs() -> Iterator[str]:
    yield "pull_back"
    yield from (f"pull_back_{number}" for number in count(2))


def _sites(body: Sequence[Statement], spelled: set[str]) -> list[_Place]:
    """The calls of `torch.autograd.grad`, in the block's own statements and in branches inside it."""
    calls = [(number, call) for number, statement in enumerate(body) for line in _lines(statement) for call in _calls(line)]
    sites = (_place(number, call) for number, call in calls if _code(call.func) in spelled)
    return [site for site in sites if site is not None]


def _lines(statement: Statement) -> Iterator[cst.SimpleStatementLine]:
    """A statement of one line, or those in the branches of an `if`: they run once at most, and after the statements before it."""
    if isinstance(statement, cst.SimpleStatementLine):
        yield statement
    elif isinstance(statement, cst.If):
        for part in (statement.body, statement.orelse):
            block = part.body if isinstance(part, cst.Else) else part
            inner = [block] if isinstance(block, cst.If) else block.body if isinstance(block, cst.IndentedBlock) else ()
            for one in inner:
                yield from _lines(one)


def _place(number: int, call: cst.Call) -> _Place | None:
    given: dict[str, cst.BaseExpression] = {}
    for index, argument in enumerate(call.args):
        name = argument.keyword.value if argument.keyword else PARAMETERS[index] if index < len(PARAMETERS) else ""
        if argument.star or name not in PARAMETERS:
            return None
        given[name] = argument.value
    output, inputs = _output(given.get("outputs")), _several(given.get("inputs"))
    create = given.get("create_graph", cst.Name("False"))
    if not inputs or any(_calls(create)) or not {"outputs", "inputs"} <= given.keys():
        return None
    if not output and _only(given.get("grad_outputs")) is not None:
        return None
    summed = isinstance(given["outputs"], cst.Call)
    cotangent = given["outputs"] if not output else None if summed else _only(given.get("grad_outputs"))
    return _Place(number, call, output, inputs, cotangent, create)


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
    body: Sequence[Statement], site: _Place, values: dict[str, cst.BaseExpression], pull_back: str, block: _Block
) -> list[Statement] | None:
    """The block with the gradient by a pull-back of that name; `None` where the way from the inputs to the output is not followed.

    `values` are the values of names whose gradients were taken with regard to something else, and gets that of the output.
    """
    before, inputs = body[: site.statement], set(site.inputs)
    if not site.output:
        return _of_expression(body, site) if isinstance(body[site.statement], cst.SimpleStatementLine) else None
    made = max((number for number, statement in enumerate(before) if site.output in _bound(statement)), default=-1)
    if made < 0 or any(_bound(statement) & inputs for statement in before[made:]) or _binds(body[site.statement], {site.output, *inputs}):
        return None
    start = max((number + 1 for number, statement in enumerate(before[:made]) if _bound(statement) & inputs), default=0)
    chain = _chain(body, start, made, site)
    again = site.output in values
    value = values[site.output] if again else _assigned(body[made], site.output)
    if chain is None or value is None:
        return None
    outer = _outer_names([*(body[number] for number in chain), _returning(value)], inputs)
    if start == 0 and not _is_whole(outer, inputs, chain, body, block):
        return None
    values[site.output] = value
    # What gives other names too stays, and so does what was differentiated before.
    again = again or _bound(body[made]) != {site.output}
    if again and _is_changed(body, [*chain, made], value, site.statement):
        return None
    bound = _all(_bound, (body[number] for number in chain))
    carried = outer & bound & (block.parameters | _all(_bound, block.around) | _all(_bound, before[: chain[0]] if chain else ()))
    later = _all(_names, (*body[made + 1 :], *block.around)) | (carried if block.repeated else set())
    results = bound & (later - {site.output})
    aside = results if results <= block.arrays and not again else set()
    dropped = {number for number in chain if not _bound(body[number]) & (results - aside)} if not again else set()
    new: list[Statement] = []
    for number, statement in enumerate(body):
        if number == (site.statement if again else made):
            lines = tuple(getattr(statement, "leading_lines", ())) if not again else ()
            target = "_" if again else site.output
            new += _pulled(body, chain, _Pull(target, site, value, pull_back, tuple(sorted(carried)), tuple(sorted(aside)), lines))
        if number == site.statement:
            new.append(_with_pull_back(statement, site, pull_back))
        elif number not in dropped and (again or number != made):
            new.append(statement)
    return new


def _all(names: Callable[[Statement], set[str]], statements: Iterable[Statement]) -> set[str]:
    return set[str]().union(*map(names, statements))


class _Pull(NamedTuple):
    """What a pull-back is made of: the name that the value gets, names that the function begins with (`carried`) and gives beside the value (`aside`)."""

    target: str
    site: _Place
    value: cst.BaseExpression
    name: str
    carried: tuple[str, ...]
    aside: tuple[str, ...]
    lines: tuple[cst.EmptyLine, ...]


def _pulled(body: Sequence[Statement], chain: Sequence[int], pull: _Pull) -> list[Statement]:
    """The statements that make the value and its pull-back."""
    site = pull.site
    arguments = ", ".join(site.inputs)
    name = _function(pull.value, site.inputs)
    function: list[Statement] = []
    aside = pull.aside[0] if len(pull.aside) == 1 else f"({', '.join(pull.aside)})"
    if chain:
        name = f"{site.output}_of"
        value = f"{_code(pull.value)}, {aside}" if pull.aside else _code(pull.value)
        inner = [*(body[number] for number in chain), cst.parse_statement(f"return {value}")]
        header = f"def {name}({', '.join((arguments, *(f'{one}={one}' for one in pull.carried)))}):\n    pass"
        made = cst.ensure_type(cst.parse_statement(header), cst.FunctionDef)
        function = [made.with_changes(body=cst.IndentedBlock(inner))]  # type: ignore[arg-type]
    results, option = (f", {aside}", ", has_aux=True") if pull.aside else ("", "")
    line = cst.parse_statement(f"{pull.target}, {pull.name}{results} = jax.vjp({name}, {arguments}{option})")
    lines = [cst.EmptyLine(indent=False)] if function else pull.lines
    return [*function, cst.ensure_type(line, cst.SimpleStatementLine).with_changes(leading_lines=lines)]


def _returning(value: cst.BaseExpression) -> cst.SimpleStatementLine:
    return cst.SimpleStatementLine([cst.Return(value)])


def _binds(statement: Statement, names: set[str]) -> bool:
    """Whether a branch assigns one of the names, beside what it asks a gradient for."""
    return isinstance(statement, cst.If) and bool(_bound(statement) & names)


def _outer_names(statements: Sequence[Statement], inputs: set[str]) -> set[str]:
    """The names that statements read before they assign them."""
    outer, own = set[str](), set(inputs)
    for statement in statements:
        outer |= _read(statement) - own
        own |= _bound(statement)
    return outer


def _read(statement: Statement) -> set[str]:
    """The names that a statement may read before it assigns them; of one that assigns names, those in its value."""
    match statement:
        case cst.SimpleStatementLine(body=[cst.Assign(targets=targets, value=value)]):
            return _names(value).union(
                *(_names(one.target) for one in targets if not isinstance(one.target, (cst.Name, cst.Tuple, cst.List)))
            )
        case cst.FunctionDef():
            return _free(statement)
    return _names(statement)


def _is_whole(outer: set[str], inputs: set[str], chain: Sequence[int], body: Sequence[Statement], block: _Block) -> bool:
    """Whether the block holds all of the way from inputs that it does not make itself: no other name that is read there follows from them."""
    if block.repeated and outer & {name for number in chain for name in _bound(body[number])}:
        return False
    following = set(inputs)
    for _ in block.around:
        reached = {name for one in block.around for name in _followers(one, following)} | following
        if reached == following:
            break
        following = reached
    return not outer & (following - inputs)


def _followers(statement: Statement, names: set[str]) -> set[str]:
    """The names that a statement, or one inside it, computes from these."""
    lines: list[Statement] = list(_nodes(statement, cst.SimpleStatementLine)) or [statement]
    return {name for line in lines if _names(line) & names for name in _bound(line)}


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
    new = body[site.statement].deep_replace(site.call, site.result(text))
    assert isinstance(new, (cst.BaseStatement, cst.BaseSmallStatement))
    return [*before, new, *body[site.statement + 1 :]]


def _function(value: cst.BaseExpression, inputs: Sequence[str]) -> str:
    """The function of these names that gives the value: `d` for `d(x)`."""
    plain = isinstance(value, cst.Call) and [_code(item.value) for item in value.args if not (item.keyword or item.star)] == list(inputs)
    if isinstance(value, cst.Call) and plain and len(value.args) == len(inputs) and not _names(value.func) & set(inputs):
        return _code(value.func)
    return f"lambda {', '.join(inputs)}: {_code(value)}"


def _chain(body: Sequence[Statement], start: int, end: int, site: _Place) -> list[int] | None:
    """The statements between that lead from the inputs to the output; `None` where one of them does more than assign names.

    One that gives a name of theirs another value belongs to them as well.
    """
    reached, used, chain = set(site.inputs), set[str](), []
    for number in range(start, end):
        statement = body[number]
        if _only_marks(statement) or not (_free(statement) & reached or _bound(statement) & used):
            continue
        if not _bound(statement) or not _only_assigns(statement):
            return None
        reached |= _bound(statement)
        used |= _names(statement)
        chain.append(number)
    return chain if _names(body[end]) & reached else None


def _only_assigns(statement: Statement) -> bool:
    """Whether a statement assigns names, or defines a function; of a branch or loop, whether all in it do, and nothing leaves it."""
    if isinstance(statement, cst.FunctionDef):
        return True
    if isinstance(statement, cst.SimpleStatementLine):
        return all(isinstance(one, cst.Pass) or (isinstance(one, ASSIGNING) and _assigns_names(one)) for one in statement.body)
    if not isinstance(statement, (cst.If, cst.For)) or not isinstance(statement.body, cst.IndentedBlock):
        return False
    parts: list[Statement] = [*statement.body.body]
    other = statement.orelse
    if isinstance(other, cst.If):
        parts.append(other)
    elif other is not None:
        parts += other.body.body
    return all(map(_only_assigns, parts))


ASSIGNING = (cst.Assign, cst.AugAssign, cst.AnnAssign)


def _assigns_names(statement: cst.Assign | cst.AugAssign | cst.AnnAssign) -> bool:
    targets = [one.target for one in statement.targets] if isinstance(statement, cst.Assign) else [statement.target]
    return all(_is_names(target) for target in targets)


def _is_names(target: cst.BaseExpression) -> bool:
    """Whether a target is a name, or a tuple of names."""
    if isinstance(target, (cst.Tuple, cst.List)):
        return all(_is_names(element.value) for element in target.elements)
    return isinstance(target, cst.Name)


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
        case cst.SimpleStatementLine(
            body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(value=cst.Name(), attr=cst.Name(value="requires_grad")))])]
        ):
            return True
        case cst.If(orelse=None, body=cst.IndentedBlock(body=inner)):
            return not any(_calls(statement.test)) and all(map(_only_marks, inner))
    return False


def _with_pull_back(statement: Statement, site: _Place, pull_back: str) -> Statement:
    cotangent = _code(site.cotangent) if site.cotangent is not None else f"jnp.ones_like({site.output})"
    new = statement.deep_replace(site.call, site.result(f"{pull_back}({cotangent})"))
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
