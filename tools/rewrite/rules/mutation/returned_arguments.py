"""Arrays that a called function changes in place: in JAX the caller's array stays as it was, so the function hands the new one back."""

from __future__ import annotations

import ast

import libcst as cst

from migrate_agent.tools.rewrite.analysis.aliases import SURE_VIEWS, final_statement, is_reversible_view, root
from migrate_agent.tools.rewrite.analysis.argument_writes.parameter_writes import parameter_at
from migrate_agent.tools.rewrite.analysis.randomness import FunctionKey
from migrate_agent.tools.rewrite.rules.control_flow.constants import leaves
from migrate_agent.tools.rewrite.rules.mutation.handed_back import handed_back, mutated
from migrate_agent.tools.rewrite.rules.mutation.writes import _text, _Writes
from migrate_agent.tools.rewrite.rules.parameters.passed_variables import callees
from migrate_agent.tools.rewrite.rules.parameters.variables import is_buffer_of_other, may_be_unset, storage, variable
from migrate_agent.tools.rewrite.tables.registry import Refuse


class ReturnChangedArguments(_Writes):
    """Return arguments that a function changes in place: `def init_(w): w.uniform_()` → the same with `return w`, and `init_(w)` → `w = init_(w)`.

    A buffer takes the new value as a variable does: `self.mean[...] = average_(self.mean[...], x)`. Declines (a hole at the call) where the
    function returns something already, and the argument is read again after the call.
    """

    KEEP = ("def g(x):\n    x.append(1)\n\ndef f(x):\n    g(x)\n    return x\n",)
    CHANGE = (
        (
            "import torch\n\ndef fill(x: torch.Tensor, y: torch.Tensor, value):\n    if value is None:\n        return\n    x.fill_(value)\n    y += value\n\n"
            "def f(a: torch.Tensor, b: torch.Tensor):\n    fill(a, b, 3.0)\n    return a * b\n",
            "def fill(x: jax.Array, y: jax.Array, value):\n    if value is None:\n        return x, y\n    x = jnp.full_like(x, value)\n    y += value\n"
            "    return x, y\n\n\ndef f(a: jax.Array, b: jax.Array):\n    a, b = fill(a, b, 3.0)\n    return a * b\n",
        ),
        (
            "import torch\n\ndef top(x: torch.Tensor):\n    x.fill_(1.0)\n    return x.sum()\n\n"
            "def f(a: torch.Tensor, early):\n    r = a * 2\n    if early:\n        return top(r)\n    return torch.relu(r)\n",
            "def top(x: jax.Array):\n    x = jnp.ones_like(x)\n    return jnp.sum(x)\n\n\n"
            "def f(a: jax.Array, early):\n    r = a * 2\n    if early:\n        return top(r)\n    return jax.nn.relu(r)\n",
        ),
        (
            "import torch\n\ndef fill(x: torch.Tensor):\n    x.fill_(1.0)\n    return x, None\n\n"
            "def f(a: torch.Tensor):\n    a, rest = fill(a)\n    return a * 2\n",
            "def fill(x: jax.Array):\n    x = jnp.ones_like(x)\n    return x, None\n\n\n"
            "def f(a: jax.Array):\n    a, rest = fill(a)\n    return a * 2\n",
        ),
        (
            "import torch\n\ndef fill(x: torch.Tensor):\n    x.fill_(1.0)\n\ndef f(a: torch.Tensor):\n    b = a[0]\n    fill(b)\n    return a\n",
            "def fill(x: jax.Array):\n    x = jnp.ones_like(x)\n    return x\n\n\n"
            "def f(a: jax.Array):\n    b = a[0]\n    b = fill(b)\n    a = a.at[0].set(b)\n    return a\n",
        ),
        (
            "import torch\nfrom torch import nn\n\ndef average_(mean: torch.Tensor, new: torch.Tensor):\n    mean.data.mul_(0.9).add_(new)\n\n"
            "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.register_buffer('mean', torch.zeros(3))\n"
            "        self.register_buffer('all', torch.zeros(2, 3))\n\n"
            "    def forward(self, x: torch.Tensor):\n        average_(self.mean, x)\n        average_(self.all[0], x)\n        return x\n",
            "def average_(mean: jax.Array, new: jax.Array):\n    mean = mean * 0.9 + new\n    return mean\n\n\n"
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.mean = nnx.Variable(jnp.zeros(3))\n"
            "        self.all = nnx.Variable(jnp.zeros((2, 3)))\n\n"
            "    def __call__(self, x: jax.Array):\n        self.mean[...] = average_(self.mean[...], x)\n"
            "        self.all[...] = self.all[...].at[0].set(average_(self.all[0], x))\n        return x\n",
        ),
    )
    CHECKS = ("leave_Call",)

    def leave_Call(self, original: cst.Call, updated: cst.BaseExpression) -> None:
        """Refuse what is read again and cannot be handed back."""
        context = self.context
        if isinstance(context.parent(), cst.Expr) and self._targets(original) is not None:
            return
        for key in callees(context, original):
            for name, value in self._changed(key, original):
                buffers = context.randomness.buffers.get(key, frozenset())
                if not (name in buffers and self._is_variable(value)) and self._read_again(original, value):
                    text = _text(value)
                    reason = f"{key[1]} changes {text} ({name}) in place, and it is read afterwards: return the new value instead"
                    context.hole(original, reason, "alias-write")
                    return

    def leave_Expr(self, original: cst.Expr, updated: cst.Expr) -> cst.BaseSmallStatement | None:
        targets = self._targets(original.value) if isinstance(original.value, cst.Call) else None
        if not targets:
            return None
        try:
            if len(targets) == 1:
                return self._assign(targets[0], self._rewrite_again(targets[0]), updated.value)
            stores = [self._place(target) for target in targets]
        except Refuse as refusal:
            self.context.hole(original, refusal.reason, refusal.code)
            return None
        for target in targets:
            if isinstance(target, (cst.Name, cst.Attribute)):
                self._check_alias(target)
        return cst.Assign([cst.AssignTarget(cst.Tuple([cst.Element(store) for store in stores], lpar=[], rpar=[]))], updated.value)

    def leave_Return(self, original: cst.Return, updated: cst.Return) -> cst.Return | None:
        names = handed_back(self.context, self._key())
        return _return_statement(names) if names and original.value is None else None

    def leave_FunctionDef(self, original: cst.FunctionDef, updated: cst.FunctionDef) -> cst.FunctionDef | None:
        names = handed_back(self.context, self._key())
        if not names or not isinstance(updated.body, cst.IndentedBlock):
            return None
        # The function does not reach its end.
        if leaves(updated.body):
            return None
        body = [*updated.body.body, cst.SimpleStatementLine([_return_statement(names)])]
        return updated.with_changes(body=updated.body.with_changes(body=body))

    def _key(self) -> FunctionKey:
        return self.context.function_key

    def _targets(self, call: cst.Call) -> list[cst.BaseExpression] | None:
        """What a call as a statement gives new values to: names, buffers, parts of them; `None` where it does not hand them back."""
        keys = callees(self.context, call)
        names = handed_back(self.context, keys[0]) if len(keys) == 1 else ()
        arguments = dict(self._changed(keys[0], call)) if names else {}
        targets = [value for name in names if (value := arguments.get(name)) is not None and self._takes_value(value)]
        # `f(x, x)` would bind one name to two new values.
        distinct = {root(_parsed(target)) for target in targets}
        return targets if names and len(targets) == len(names) == len(distinct) else None

    def _takes_value(self, value: cst.BaseExpression) -> bool:
        """Whether an argument can be given the new value: a name, what holds a tensor or a parameter in a module, or a part of one of them."""
        if isinstance(value, cst.Name):
            return True
        base, view = _viewed_base(value), _parsed(value)
        if not is_reversible_view(view):
            return False
        if isinstance(base, cst.Attribute) and self._is_stored(base):
            fact = self.context.observed(base)
            return value is base or (fact is not None and "parameter" not in fact.kinds)
        # What is written behind autograd's back leaves the gradient of the whole as it was.
        behind = any(isinstance(node, ast.Attribute) and node.attr in ("data", "detach") for node in ast.walk(view))
        return isinstance(base, cst.Name) and not behind

    def _is_stored(self, node: cst.Attribute) -> bool:
        """Whether an attribute is known to be a tensor or parameter, never None, and it is known what holds it in the rewrite."""
        fact = self.context.observed(node)
        if fact is None or set(fact.kinds) not in ({"parameter"}, {"tensor"}):
            return False
        if self.context.is_self(node.value) and may_be_unset(self, node.attr.value):
            return False
        try:
            self._place(node)
        except Refuse:
            return False
        return True

    def _place(self, target: cst.BaseExpression) -> cst.BaseAssignTargetExpression:
        """What to assign to, beside other targets. Raises `Refuse`."""
        if isinstance(target, cst.Attribute) and self._plain_attribute(target):
            return target.deep_clone()
        if not isinstance(target, (cst.Name, cst.Attribute)):
            raise Refuse("a part of a tensor is changed beside others", "alias-write")
        return storage(self, target).deep_clone()

    def _is_variable(self, value: cst.BaseExpression) -> bool:
        """Whether an argument is handed over as the variable that it is."""
        if isinstance(value, cst.Name):
            randomness = self.context.randomness
            return self.context.is_buffer_name(value) or value.value in randomness.lent_buffers.get(self.context.function_key, ())
        return variable(self, value) or is_buffer_of_other(self, value)

    def _changed(self, key: FunctionKey, call: cst.Call) -> list[tuple[str, cst.BaseExpression]]:
        """(parameter, argument) of what a function changes in place."""
        context = self.context
        names = mutated(context, key)
        rows = [
            (argument.keyword.value if argument.keyword else parameter_at(context.repo, key, position), argument.value)
            for position, argument in enumerate(call.args)
            if not argument.star
        ]
        return [(name, value) for name, value in rows if name in names]

    def _read_again(self, call: cst.Call, value: cst.BaseExpression) -> bool:
        """Whether the memory of an argument, or that of what it may be a view of, is read after the call."""
        name = root(_parsed(value))
        context = self.context
        function = context.function
        if "." in name or isinstance(_viewed_base(value), cst.Attribute):
            return True
        if not name or function is None:
            return False
        parent = context.parent()
        if isinstance(parent, cst.Assign) and any(_binds(target.target, name) for target in parent.targets):
            return False
        line, end = context.span(call).line, context.span(call).end_line
        around = final_statement(function, line) or function
        loops = [n for n in ast.walk(around) if isinstance(n, (ast.For, ast.While)) and n.lineno <= line and end <= (n.end_lineno or 0)]
        # The next round of a loop reads what stands above the call.
        start = min((n.lineno for n in loops), default=end + 1)
        reads = (n for n in ast.walk(around) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load))
        return any(n.lineno >= start and not line <= n.lineno <= end for n in reads)


def _parsed(node: cst.BaseExpression) -> ast.expr:
    return ast.parse(f"({_text(node)}\n)", mode="eval").body


def _binds(target: cst.BaseExpression, name: str) -> bool:
    """Whether an assignment to this target binds the name: by itself, or in a tuple."""
    if isinstance(target, (cst.Tuple, cst.List)):
        return any(_binds(element.value, name) for element in target.elements)
    return isinstance(target, cst.Name) and target.value == name


def _viewed_base(value: cst.BaseExpression) -> cst.BaseExpression:
    """What an argument such as `x[0]` or `x.t()` is a view of."""
    while True:
        match value:
            case cst.Subscript(value=inner):
                value = inner
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=name))) if name in SURE_VIEWS:
                value = inner
            case cst.Attribute(value=inner, attr=cst.Name(value=name)) if name in SURE_VIEWS:
                value = inner
            case _:
                return value


def _return_statement(names: tuple[str, ...]) -> cst.Return:
    values: list[cst.BaseExpression] = [cst.Name(name) for name in names]
    return cst.Return(values[0] if len(values) == 1 else cst.Tuple([cst.Element(value) for value in values], lpar=[], rpar=[]))
