"""Parameters that are kept but not trained: `requires_grad = False`."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import NamedTuple

import libcst as cst

from migrate_agent.tools.rewrite.analysis.argument_writes.parameter_writes import argument_names
from migrate_agent.tools.rewrite.analysis.facts import span_of
from migrate_agent.tools.rewrite.rules.parameters.variables import PARAMETERS, own_layer, variable
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.registry import layers
from migrate_agent.tools.rewrite.tables.templates import fill, wrap

PARAMETRISED = frozenset({"g", "v", "orig"})
"""What `weight_norm` and `spectral_norm` put behind the name of a parameter."""


class FreezeParameters(Rule):
    """Freeze parameters: `for p in net.parameters(): p.requires_grad = False` → `freeze(net)`; of one parameter → `self.w = frozen(self.w)`.

    `net.requires_grad_(False)` likewise. A condition on names or values becomes an argument: `freeze(net,
    where=lambda name, p: "head" not in name)`. What is frozen and thawed in one block, to write to it, is
    neither. Declines (a hole) for other computed values.
    """

    KEEP = ("class Plain:\n    def f(self, x):\n        x.requires_grad = False\n",)
    CHANGE = (
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n        self.a = nn.Linear(d, d)\n"
            "        for p in self.a.parameters():\n            p.requires_grad = False\n        self.b = nn.Linear(d, d)\n"
            "        self.b.requires_grad_(False)\n        self.c = nn.Linear(d, d)\n        self.c.weight.requires_grad = False\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.a = Linear(d, d, rngs=rngs)\n        freeze(self.a)\n"
            "        self.b = Linear(d, d, rngs=rngs)\n        freeze(self.b)\n        self.c = Linear(d, d, rngs=rngs)\n"
            "        self.c.kernel = frozen(self.c.kernel)\n",
        ),
        (
            "from torch import nn\n\nclass Lora(nn.Linear):\n    def __init__(self, d):\n        super().__init__(d, d)\n"
            "        self.weight.requires_grad = False\n",
            "class Lora(Linear):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        super().__init__(d, d, rngs=rngs)\n"
            "        self.kernel = frozen(self.kernel)\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        pe = torch.zeros(d)\n        pe.requires_grad = False\n        self.register_buffer('pe', pe)\n"
            "        self.table = torch.zeros(d)\n        self.table.requires_grad = False\n\n"
            "    def forward(self, x: torch.Tensor):\n        x.requires_grad = False\n        return x * self.pe + self.table\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        pe = jnp.zeros(d)\n        self.pe = nnx.Variable(pe)\n"
            "        self.table = jnp.zeros(d)\n\n"
            "    def __call__(self, x: jax.Array):\n        x = lax.stop_gradient(x)\n        return x * self.pe[...] + self.table\n",
        ),
        (
            "import torch\nfrom torch import nn\n\ndef table(d):\n    w = nn.Parameter(torch.ones(d))\n    w.requires_grad = False\n    return w\n",
            "def table(d):\n    w = nnx.Param(jnp.ones(d))\n    w = frozen(w)\n    return w\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n        self.a = nn.Linear(d, d)\n"
            "        self.a.weight.requires_grad = False\n        self.a.weight.mul_(2)\n        self.a.weight.requires_grad = True\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.a = Linear(d, d, rngs=rngs)\n"
            "        self.a.weight = self.a.weight * 2\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d, learned=True):\n        super().__init__()\n"
            "        self.a = nn.Linear(d, d)\n        self.b = nn.Linear(d, d)\n        self.a.weight.requires_grad = learned\n"
            "        for name, p in self.named_parameters():\n            p.requires_grad = 'bias' in name\n"
            "        for p in self.b.parameters():\n            p.requires_grad_(not learned)\n        self.b.requires_grad_(learned)\n"
            "        for name, p in self.a.named_parameters():\n            if not name.startswith('b') and p.dim() > 1:\n"
            "                p.requires_grad_(False)\n"
            "        for p, q in zip(self.a.parameters(), self.b.parameters()):\n            q.data.copy_(p.data)\n"
            "            q.requires_grad = False\n",
            "class M(nnx.Module):\n    def __init__(self, d, learned=True, *, rngs: nnx.Rngs):\n        self.a = Linear(d, d, rngs=rngs)\n"
            "        self.b = Linear(d, d, rngs=rngs)\n        self.a.kernel = frozen(self.a.kernel, unless=learned)\n"
            "        freeze(self, where=lambda name, p: 'bias' not in name)\n        freeze(self.b, where=lambda _, p: learned)\n"
            "        freeze(self.b, where=lambda _, p: not learned)\n"
            "        freeze(self.a, where=lambda name, p: not name.startswith('b') and p.ndim > 1)\n"
            "        for p, q in zip(parameters(self.a), parameters(self.b)):\n            q[...] = jnp.broadcast_to(p[...], q[...].shape).astype(q[...].dtype)\n"
            "        freeze(self.b)\n",
        ),
        (
            "from itertools import chain\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.a = nn.Linear(d, d)\n        self.b = nn.Linear(d, d)\n        self.c = nn.Linear(d, d)\n"
            "        for p, q in zip(chain(self.a.parameters()), chain(self.c.parameters())):\n            q.data.copy_(p.data)\n"
            "            q.requires_grad = False\n"
            "        for p in chain(self.a.parameters(), self.b.parameters()):\n            p.requires_grad = False\n",
            "from itertools import chain\n\n\n"
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.a = Linear(d, d, rngs=rngs)\n"
            "        self.b = Linear(d, d, rngs=rngs)\n        self.c = Linear(d, d, rngs=rngs)\n"
            "        for p, q in zip(chain(parameters(self.a)), chain(parameters(self.c))):\n"
            "            q[...] = jnp.broadcast_to(p[...], q[...].shape).astype(q[...].dtype)\n"
            "        freeze(self.c)\n        freeze(self.a)\n        freeze(self.b)\n",
        ),
    )

    def leave_For(self, original: cst.For, updated: cst.For) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement] | None:
        """A loop that freezes parameters: all of them, those that a condition on name or value picks, or each beside other work."""
        if not isinstance(original.body, cst.IndentedBlock) or not isinstance(updated.body, cst.IndentedBlock) or original.orelse:
            return None
        names = _loop_names(original)
        if names is not None and len(original.body.body) == len(updated.body.body) == 1 and isinstance(original.iter, cst.Call):
            where = _frozen_where(original.body.body[0], updated.body.body[0], names.parameter)
            if where is not None and not _is_name(where, "False"):
                return self._freeze_loop(original, updated, names, where)
        return self._freeze_afterwards(original, updated)

    def _freeze_loop(self, original: cst.For, updated: cst.For, names: _Names, where: cst.BaseExpression) -> cst.SimpleStatementLine:
        # `p.requires_grad = False` alone is a hole, since `p` is only the loop's name for many parameters.
        first, end = self.context.span(original).line, self.context.span(original).end_line
        self.context.holes[:] = [hole for hole in self.context.holes if not (hole.code == "frozen" and first <= hole.span.line <= end)]
        assert isinstance(original.iter, cst.Call) and isinstance(original.iter.func, cst.Attribute)
        module = original.iter.func.value
        if _is_name(where, "True"):
            call = self.context.build("vendored.freeze({module})", module=module)
        else:
            call = self.context.build(
                f"vendored.freeze({{module}}, where=lambda {names.name}, {names.parameter}: {{where}})", module=module, where=where
            )
        return cst.SimpleStatementLine([cst.Expr(call)], leading_lines=updated.leading_lines)

    def _freeze_afterwards(self, original: cst.For, updated: cst.For) -> cst.FlattenSentinel[cst.BaseStatement] | None:
        """`for p, q in zip(…): p.copy_(q); q.requires_grad = False` → the loop without the last, then `freeze` of the module walked."""
        assert isinstance(original.body, cst.IndentedBlock) and isinstance(updated.body, cst.IndentedBlock)
        if len(original.body.body) != len(updated.body.body):
            return None
        walked = _walked_modules(original)
        gone = [line for line in original.body.body if (name := _frozen_name(line)) is not None and name in walked]
        body = [new for old, new in zip(original.body.body, updated.body.body, strict=True) if old not in gone]
        if not gone:
            return None
        self.context.drop_holes(*gone)
        loops = [updated.with_changes(body=updated.body.with_changes(body=body))] if body else []
        modules = [module for line in gone for module in walked[_frozen_name(line) or ""]]
        calls = [self.context.build("vendored.freeze({module})", module=module) for module in modules]
        return cst.FlattenSentinel([*loops, *(cst.SimpleStatementLine([cst.Expr(call)]) for call in calls)])

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.Assign | None:
        target = original.targets[0].target
        if not (isinstance(target, cst.Attribute) and target.attr.value == "requires_grad" and len(original.targets) == 1):
            return None
        if self._is_thawed_again(target):
            return None
        if (cut := self._cut_off(target.value, original.value)) is not None:
            return cut
        return self._freeze_variable(original, target.value, original.value)

    def _cut_off(self, node: cst.BaseExpression, value: cst.BaseExpression) -> cst.Assign | None:
        """A tensor that is no parameter, and is differentiated no further: `x.requires_grad = False` → `x = lax.stop_gradient(x)`."""
        fact = self.context.observed(node)
        if not isinstance(node, cst.Name) or not _is_name(value, "False") or fact is None or fact.kinds != ("tensor",):
            return None
        return cst.Assign([cst.AssignTarget(node)], self.context.build("lax.stop_gradient({x})", x=node))

    def leave_SimpleStatementLine(self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine) -> cst.RemovalSentinel | None:
        """Both ends of a block's while without gradients; and tensors made in this function, which nothing differentiates."""
        flag = _gradient_flag(original)
        if flag is None:
            return None
        if self._is_thawed_again(flag.target) or self._is_constant(flag):
            return cst.RemoveFromParent()
        return None

    def _is_constant(self, flag: _Flag) -> bool:
        """Whether a constructor switches off the gradient of a tensor that it made: torch allows that only where it depends on nothing."""
        node = flag.target.value if isinstance(flag.target, cst.Attribute) else None
        function, fact = self.context.function, self.context.observed(node) if node is not None else None
        if function is None or not self.context.constructing or not _is_name(flag.value, "False"):
            return False
        arguments = argument_names(function)
        if isinstance(node, cst.Attribute) and _is_name(node.value, "self"):
            values = assigned_values(function, node.attr.value)
            made_here = bool(values) and not any(isinstance(value, ast.Name) and value.id in arguments for value in values)
        else:
            made_here = isinstance(node, cst.Name) and node.value not in arguments
        return fact is not None and fact.kinds == ("tensor",) and made_here

    def _is_thawed_again(self, target: cst.BaseExpression) -> bool:
        """Whether the block sets this `requires_grad` to `False` and then to `True`, and never else."""
        block = next(node for node in reversed(self.context.stack) if isinstance(node, cst.IndentedBlock | cst.Module))
        flags = [flag for flag in map(_gradient_flag, block.body) if flag is not None and flag.target.deep_equals(target)]
        # Torch lets nobody write to a leaf that requires a gradient; arrays need no such permission.
        return len(flags) == 2 and _is_name(flags[0].value, "False") and _is_name(flags[1].value, "True")

    def leave_Expr(self, original: cst.Expr, updated: cst.Expr) -> cst.Assign | None:
        call = original.value
        if not (isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and call.func.attr.value == "requires_grad_"):
            return None
        if self.context.is_module(call.func.value):
            return None
        return self._freeze_variable(original, call.func.value, call.args[0].value if call.args else cst.Name("True"))

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        """`net.requires_grad_(False)` of a module."""
        func, new = original.func, updated.func
        if not (isinstance(func, cst.Attribute) and func.attr.value == "requires_grad_" and isinstance(new, cst.Attribute)):
            return None
        if not self.context.is_module(func.value) or not original.args:
            return None
        trained = original.args[0].value
        if _is_name(trained, "True"):
            return None
        if _is_name(trained, "False"):
            return self.context.build("vendored.freeze({module})", module=new.value)
        text = "vendored.freeze({module}, where=lambda _, p: {frozen})"
        return self.context.build(text, module=new.value, frozen=_negation(updated.args[0].value))

    def _freeze_variable(self, statement: cst.BaseSmallStatement, node: cst.BaseExpression, value: cst.BaseExpression) -> cst.Assign | None:
        """One parameter that is frozen."""
        target = self._variable_of(node)
        if target is not None and not isinstance(value, cst.Name | cst.Attribute):
            target = None
        if target is not None and not _is_name(value, "True") and not _is_name(value, "False"):
            text = "vendored.frozen({x}, unless={trained})"
            return cst.Assign([cst.AssignTarget(target)], self.context.build(text, x=target.deep_clone(), trained=value))
        if not _is_name(value, "False") or target is None:
            fact = self.context.observed(node)
            if fact is not None and set(fact.kinds) <= {"parameter"} and not _is_name(value, "True"):
                self.context.hole(statement, "whether a parameter is trained is decided one by one", "frozen")
            return None
        return cst.Assign([cst.AssignTarget(target)], self.context.build("vendored.frozen({x})", x=target.deep_clone()))

    def _variable_of(self, node: cst.BaseExpression) -> cst.Attribute | cst.Name | None:
        """The attribute, or the name of a parameter that this function makes, that holds the variable behind `node`."""
        if isinstance(node, cst.Name) and self._is_made_here(node):
            return node
        return variable_behind(self, node)

    def _is_made_here(self, node: cst.Name) -> bool:
        """Whether all that binds this local name are calls of `nn.Parameter`."""
        context = self.context
        function = context.function
        if function is None or node.value in argument_names(function):
            return False
        stores = sum(isinstance(n, ast.Name) and n.id == node.value and isinstance(n.ctx, ast.Store) for n in ast.walk(function))
        parameter_count = 0
        for child in ast.walk(function):
            if isinstance(child, ast.Assign) and isinstance(child.value, ast.Call) and len(child.targets) == 1:
                target = child.targets[0]
                dotted = context.facts.dotted.get(span_of(child.value.func, context.file.lines), "")
                parameter_count += isinstance(target, ast.Name) and target.id == node.value and dotted in PARAMETERS
        return 0 < stores == parameter_count


class _Names(NamedTuple):
    """What a loop over the parameters of one module calls the name (`_` where it has none) and the value."""

    name: str
    parameter: str


def _loop_names(loop: cst.For) -> _Names | None:
    match loop.iter, loop.target:
        case cst.Call(func=cst.Attribute(attr=cst.Name("parameters")), args=[]), cst.Name(value=parameter):
            return _Names("_", parameter)
        case (
            cst.Call(func=cst.Attribute(attr=cst.Name("named_parameters")), args=[]),
            cst.Tuple(elements=[cst.Element(value=cst.Name(value=name)), cst.Element(value=cst.Name(value=parameter))]),
        ):
            return _Names(name, parameter)
    return None


def _walked_modules(loop: cst.For) -> dict[str, tuple[cst.BaseExpression, ...]]:
    """Name in a loop's target → the modules whose parameters it stands for one by one."""
    match loop.iter, loop.target:
        case cst.Call(func=cst.Attribute(value=module, attr=cst.Name("parameters")), args=[]), cst.Name(value=name):
            return {name: (module,)}
        case cst.Call(func=cst.Name("chain") | cst.Attribute(attr=cst.Name("chain")), args=parts), cst.Name(value=name):
            found = [_walked_modules(loop.with_changes(iter=part.value)) for part in parts]
            return {name: tuple(module for one in found for module in one[name])} if all(found) else {}
        case cst.Call(func=cst.Name("zip"), args=arguments), cst.Tuple(elements=elements) if len(arguments) == len(elements):
            rows: dict[str, tuple[cst.BaseExpression, ...]] = {}
            for argument, element in zip(arguments, elements, strict=True):
                rows |= _walked_modules(loop.with_changes(iter=argument.value, target=element.value))
            return rows
    return {}


def _frozen_name(line: cst.CSTNode) -> str | None:
    """The name whose gradient a statement switches off."""
    setting = _setting(line)
    return setting.target.value if setting and isinstance(setting.target, cst.Name) and _is_name(setting.value, "False") else None


def _setting(line: cst.CSTNode) -> _Flag | None:
    """What a statement decides about gradients: `x.requires_grad = value` or `x.requires_grad_(value)`."""
    match line:
        case cst.SimpleStatementLine(body=[statement]):
            return _setting(statement)
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(value=node, attr=cst.Name("requires_grad")))], value=value):
            return _Flag(node, value)
        case cst.Expr(value=cst.Call(func=cst.Attribute(value=node, attr=cst.Name("requires_grad_")), args=[])):
            return _Flag(node, cst.Name("True"))
        case cst.Expr(value=cst.Call(func=cst.Attribute(value=node, attr=cst.Name("requires_grad_")), args=[cst.Arg(value=value)])):
            return _Flag(node, value)
    return None


def _frozen_where(old: cst.CSTNode, new: cst.CSTNode, parameter: str) -> cst.BaseExpression | None:
    """The condition under which the body of a loop freezes its parameter; `None` where it does anything else."""
    setting, made = _setting(old), _setting(new)
    if setting is not None and _is_name(setting.target, parameter):
        # `p.requires_grad_(False)` alone is nothing any more.
        literal = _is_name(setting.value, "True") or _is_name(setting.value, "False")
        return _negation(setting.value if literal or made is None else made.value)
    if not isinstance(old, cst.If) or not isinstance(new, cst.If):
        return None
    arms = [(old.body, new.body)]
    if old.orelse is not None and new.orelse is not None:
        arms.append((old.orelse.body, new.orelse.body) if isinstance(old.orelse, cst.Else) else (old.orelse, new.orelse))  # type: ignore[arg-type]
    conditions = [_frozen_where(*_single(one, other), parameter) for one, other in arms]
    if any(condition is None for condition in conditions):
        return None
    yes, no = [*conditions, cst.Name("False")][:2]
    match (getattr(yes, "value", ""), getattr(no, "value", "")):
        case ("True", "False"):
            return new.test
        case ("False", "True"):
            return _negation(new.test)
        case (_, "False"):
            return cst.BooleanOperation(_wrapped(new.test), cst.And(), _wrapped(yes))  # type: ignore[arg-type]
        case ("True", _):
            return cst.BooleanOperation(_wrapped(new.test), cst.Or(), _wrapped(no))  # type: ignore[arg-type]
    return None


def _single(one: cst.CSTNode, other: cst.CSTNode) -> tuple[cst.CSTNode, cst.CSTNode]:
    """The only statement of a block, before and after rewriting."""
    if isinstance(one, cst.IndentedBlock) and isinstance(other, cst.IndentedBlock) and len(one.body) == len(other.body) == 1:
        return one.body[0], other.body[0]
    return one, other


def _negation(value: cst.BaseExpression) -> cst.BaseExpression:
    match value:
        case cst.Name("True" | "False"):
            return cst.Name("False" if value.value == "True" else "True")
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            return inner
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.In() | cst.NotIn() as operator) as only]):
            other = cst.NotIn() if isinstance(operator, cst.In) else cst.In()
            return value.with_changes(comparisons=[only.with_changes(operator=other)])
    return cst.UnaryOperation(cst.Not(), _wrapped(value))


def _wrapped(value: cst.BaseExpression) -> cst.BaseExpression:
    return wrap(value, None)


class _Flag(NamedTuple):
    """What requires a gradient or not, and what decides."""

    target: cst.BaseExpression
    value: cst.BaseExpression


def assigned_values(function: ast.AST, name: str) -> list[ast.expr]:
    """What statements of a function assign to an attribute of `self`."""
    assigned = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
    return [node.value for node in assigned if any(ast.unparse(target) == f"self.{name}" for target in node.targets)]


def _gradient_flag(line: cst.BaseStatement | cst.BaseSmallStatement) -> _Flag | None:
    match line:
        case cst.SimpleStatementLine(
            body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(attr=cst.Name("requires_grad")) as target)], value=value)]
        ):
            return _Flag(target, value)
    return None


def _is_name(node: cst.BaseExpression, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def _is_parametrised(rule: Rule, node: cst.Attribute, kinds: Collection[str]) -> bool:
    """Whether this is a parameter that `weight_norm` or `spectral_norm` gave a layer; it has torch's name in the rewrite too."""
    name, _, suffix = node.attr.value.rpartition("_")
    fact = rule.context.observed(node)
    of_layers = bool(kinds) and all(kind in layers() and name in layers()[kind].params for kind in kinds)
    return suffix in PARAMETRISED and of_layers and fact is not None and set(fact.kinds) == {"parameter"}


def variable_behind(rule: Rule, node: cst.BaseExpression) -> cst.Attribute | None:
    """The attribute that holds the variable of a module's own parameter (`self.w`) or of a layer's (`layer.weight` → `layer.kernel`)."""
    if not isinstance(node, cst.Attribute):
        return None
    if variable(rule, node):
        return node
    fact = rule.context.observed(node.value)
    kinds = own_layer(rule) if rule.context.is_self(node.value) else [kind[7:] for kind in fact.kinds] if fact else []
    if _is_parametrised(rule, node, kinds):
        return node
    templates = {layers()[kind].params.get(node.attr.value, "") for kind in kinds if kind in layers()}
    template = templates.pop() if len(templates) == 1 else ""
    attribute = fill(template, {"self": node.value}) if template else None
    return attribute if isinstance(attribute, cst.Attribute) else None
