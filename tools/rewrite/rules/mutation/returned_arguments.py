"""Arrays that a called function changes in place: in JAX the caller's array stays as it was, so the function hands the new one back."""

from __future__ import annotations

import ast

import libcst as cst

from migrate_agent.tools.rewrite.analysis.aliases import SURE_VIEWS, final_statement
from migrate_agent.tools.rewrite.analysis.parameter_writes import argument_names, parameter_at
from migrate_agent.tools.rewrite.analysis.randomness import FunctionKey
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.control_flow.constants import leaves
from migrate_agent.tools.rewrite.rules.parameters.passed_variables import callees
from migrate_agent.tools.rewrite.rules.rule import Rule


class ReturnChangedArguments(Rule):
    """Return arguments that a function changes in place: `def init_(w): w.uniform_()` → the same with `return w`, and `init_(w)` → `w = init_(w)`.

    Declines (a hole at the call) where the function returns something already, and the argument is read again
    after the call.
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
            "def top(x: jax.Array):\n    x = jnp.full_like(x, 1.0)\n    return jnp.sum(x)\n\n\n"
            "def f(a: jax.Array, early):\n    r = a * 2\n    if early:\n        return top(r)\n    return jax.nn.relu(r)\n",
        ),
        (
            "import torch\n\ndef fill(x: torch.Tensor):\n    x.fill_(1.0)\n    return x, None\n\n"
            "def f(a: torch.Tensor):\n    a, rest = fill(a)\n    return a * 2\n",
            "def fill(x: jax.Array):\n    x = jnp.full_like(x, 1.0)\n    return x, None\n\n\n"
            "def f(a: jax.Array):\n    a, rest = fill(a)\n    return a * 2\n",
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
                if self._read_again(original, value):
                    text = cst.Module([]).code_for_node(value)
                    reason = f"{key[1]} changes {text} ({name}) in place, and it is read afterwards: return the new value instead"
                    context.hole(original, reason, "alias-write")
                    return

    def leave_Expr(self, original: cst.Expr, updated: cst.Expr) -> cst.Assign | None:
        targets = self._targets(original.value) if isinstance(original.value, cst.Call) else None
        if not targets:
            return None
        names: list[cst.BaseExpression] = [cst.Name(name) for name in targets]
        target = names[0] if len(names) == 1 else cst.Tuple([cst.Element(name) for name in names], lpar=[], rpar=[])
        assert isinstance(target, cst.BaseAssignTargetExpression)
        return cst.Assign([cst.AssignTarget(target)], updated.value)

    def leave_Return(self, original: cst.Return, updated: cst.Return) -> cst.Return | None:
        names = handed_back(self.context, self._key())
        return _return_statement(names) if names and original.value is None and len(self.context.functions) == 1 else None

    def leave_FunctionDef(self, original: cst.FunctionDef, updated: cst.FunctionDef) -> cst.FunctionDef | None:
        names = handed_back(self.context, self._key())
        if not names or len(self.context.functions) != 1 or not isinstance(updated.body, cst.IndentedBlock):
            return None
        # The function does not reach its end.
        if leaves(updated.body):
            return None
        body = [*updated.body.body, cst.SimpleStatementLine([_return_statement(names)])]
        return updated.with_changes(body=updated.body.with_changes(body=body))

    def _key(self) -> FunctionKey:
        return self.context.function_key

    def _targets(self, call: cst.Call) -> list[str] | None:
        """The names that a call as a statement gives new values to; `None` where it does not hand them back."""
        keys = callees(self.context, call)
        names = handed_back(self.context, keys[0]) if len(keys) == 1 else ()
        arguments = dict(self._changed(keys[0], call)) if names else {}
        values = [arguments.get(name) for name in names]
        targets = [value.value for value in values if isinstance(value, cst.Name)]
        # `f(x, x)` would bind one name to two new values.
        return targets if names and len(targets) == len(names) == len(set(targets)) else None

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
        value = _viewed_base(value)
        if isinstance(value, cst.Attribute):
            return True
        context = self.context
        function = context.function
        if not isinstance(value, cst.Name) or function is None:
            return False
        parent = context.parent()
        if isinstance(parent, cst.Assign) and any(_binds(target.target, value.value) for target in parent.targets):
            return False
        line, end = context.span(call).line, context.span(call).end_line
        around = final_statement(function, line) or function
        loops = [n for n in ast.walk(around) if isinstance(n, (ast.For, ast.While)) and n.lineno <= line and end <= (n.end_lineno or 0)]
        # The next round of a loop reads what stands above the call.
        start = min((n.lineno for n in loops), default=end + 1)
        reads = (n for n in ast.walk(around) if isinstance(n, ast.Name) and n.id == value.value and isinstance(n.ctx, ast.Load))
        return any(n.lineno >= start and not line <= n.lineno <= end for n in reads)


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


def mutated(context: Context, key: FunctionKey) -> frozenset[str]:
    """The parameters whose array a function changes in place."""
    return context.randomness.mutated.get(key, frozenset()) - context.randomness.written.get(key, frozenset())


def handed_back(context: Context, key: FunctionKey) -> tuple[str, ...]:
    """The parameters that a function changes in place and, since it returns nothing, can return."""
    names, file = mutated(context, key), context.repo.files.get(key[0])
    node = file.functions.get(key[1]) if file else None
    if not isinstance(node, ast.FunctionDef) or node.name in ("forward", "__init__"):
        return ()
    # The function has changed a view that leads back to no parameter: there is no new value to return.
    if names & context.randomness.out_of_reach.get(key, frozenset()):
        return ()
    inner = list(ast.walk(node))
    if any(isinstance(n, (ast.Yield, ast.YieldFrom)) or (isinstance(n, ast.Return) and n.value is not None) for n in inner):
        return ()
    return tuple(name for name in argument_names(node) if name in names)


def _return_statement(names: tuple[str, ...]) -> cst.Return:
    values: list[cst.BaseExpression] = [cst.Name(name) for name in names]
    return cst.Return(values[0] if len(values) == 1 else cst.Tuple([cst.Element(value) for value in values], lpar=[], rpar=[]))
