"""Functions that change a buffer of their caller, and give back something else: they take the variable itself."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.analysis.argument_writes.buffer_arguments import lent_name
from migrate_agent.tools.rewrite.analysis.argument_writes.parameter_writes import parameter_at
from migrate_agent.tools.rewrite.rules.parameters.passed_variables import callees
from migrate_agent.tools.rewrite.rules.parameters.variables import subscript
from migrate_agent.tools.rewrite.rules.rule import Rule


class TakeBuffers(Rule):
    """Make variables of what a function changes for its caller: `y = norm(x, self.mean)` hands over the variable, and `norm` begins with
    `mean = as_variable(mean)`, so that it takes arrays too.

    A local tensor that is read after such a call becomes a variable before it, or for this call alone where other code changes it too. What is a
    variable `PassVariables` reads and `ReplaceInplaceUpdates` writes as `mean[...]`. Declines where the argument is not read again, or a change would
    not be seen (`ReturnChangedArguments` leaves the hole).
    """

    KEEP = ("def f(x, g):\n    y = g(x)\n    return x + y\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\ndef norm(x: torch.Tensor, mean: torch.Tensor = None, training: bool = True):\n"
            "    if training or mean is None:\n        new = x.mean(0)\n        if mean is not None:\n"
            "            mean += 0.1 * (new.detach() - mean)\n        return x - new\n    return x - mean\n\nclass M(nn.Module):\n"
            "    def __init__(self):\n        super().__init__()\n        self.register_buffer('mean', torch.zeros(3))\n\n"
            "    def forward(self, x: torch.Tensor):\n        return norm(x, self.mean, self.training)\n",
            "def norm(x: jax.Array, mean: jax.Array = None, training: bool = True):\n    mean = as_variable(mean)\n"
            "    if training or mean is None:\n        new = jnp.mean(x, axis=0)\n        if mean is not None:\n"
            "            mean[...] = mean[...] + (0.1 * (lax.stop_gradient(new) - mean[...]))\n        return x - new\n"
            "    return x - mean[...]\n\n\nclass M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n"
            "        self.deterministic = False\n        self.mean = nnx.Variable(jnp.zeros(3))\n\n"
            "    def __call__(self, x: jax.Array):\n        return norm(x, self.mean, not self.deterministic)\n",
        ),
        (
            "import torch\nimport torch.nn.functional as F\n\ndef norm(x: torch.Tensor, mean: torch.Tensor, var: torch.Tensor):\n"
            "    return F.batch_norm(x, mean, var, training=True)\n\n"
            "def f(x: torch.Tensor, mean: torch.Tensor, var: torch.Tensor):\n    twice = mean * 2\n    y = norm(x, twice, var)\n"
            "    return y, twice\n",
            "def norm(x: jax.Array, mean: jax.Array, var: jax.Array):\n    mean = as_variable(mean)\n    var = as_variable(var)\n"
            "    return tracked_batch_norm(x, mean, var, training=True)\n\n\n"
            "def f(x: jax.Array, mean: jax.Array, var: jax.Array):\n    twice = mean * 2\n    twice = as_variable(twice)\n"
            "    y = norm(x, twice, var)\n    return y, twice[...]\n",
        ),
    )

    def leave_FunctionDef(self, original: cst.FunctionDef, updated: cst.FunctionDef) -> cst.FunctionDef | None:
        names = self.context.randomness.used_buffers.get(self.context.function_key, frozenset())
        parameters = [*original.params.posonly_params, *original.params.params, *original.params.kwonly_params]
        statements = [self._made(one.name.value) for one in parameters if one.name.value in names]
        if not statements or not isinstance(updated.body, cst.IndentedBlock):
            return None
        body = list(updated.body.body)
        start = 1 if original.get_docstring() is not None else 0
        lines = [cst.SimpleStatementLine([statement]) for statement in statements]
        return updated.with_changes(body=updated.body.with_changes(body=[*body[:start], *lines, *body[start:]]))

    def leave_Arg(self, original: cst.Arg, updated: cst.Arg) -> cst.Arg | None:
        call = self.context.parent()
        if not isinstance(call, cst.Call) or not isinstance(original.value, cst.Name) or original.value.value not in self._lent():
            return None
        is_changed = any(value is original.value for value in self._handed(call))
        return updated.with_changes(value=_variable_of(original.value.value)) if is_changed else None

    def leave_SimpleStatementLine(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | None:
        body = self._around(original, updated.body)
        return updated.with_changes(body=body) if body else None

    def leave_SimpleStatementSuite(
        self, original: cst.SimpleStatementSuite, updated: cst.SimpleStatementSuite
    ) -> cst.SimpleStatementSuite | None:
        body = self._around(original, updated.body)
        return updated.with_changes(body=body) if body else None

    def _around(self, original: cst.CSTNode, body: Sequence[cst.BaseSmallStatement]) -> list[cst.BaseSmallStatement] | None:
        """Statements with the assignments that make variables of what their calls change before them, and arrays of them again behind them;
        `None` where there are none."""
        lasting = self.context.randomness.made_buffers.get(self.context.function_key, frozenset())
        lent = self._lent()
        calls = [node for node in m.findall(original, m.Call()) if isinstance(node, cst.Call)] if lasting | lent else []
        names = list(dict.fromkeys(value.value for call in calls for value in self._handed(call) if isinstance(value, cst.Name)))
        before = [self._made(name, lent) for name in names if name in lasting | lent]
        after = [self._array_again(name) for name in names if name in lent and not isinstance(body[-1], cst.Return)]
        return [*before, *body, *after] if before else None

    def _lent(self) -> frozenset[str]:
        return self.context.randomness.lent_buffers.get(self.context.function_key, frozenset())

    def _handed(self, call: cst.Call) -> list[cst.BaseExpression]:
        """The arguments of a call that it changes."""
        context, buffers = self.context, self.context.randomness.buffers
        return [
            argument.value
            for key in callees(context, call)
            for position, argument in enumerate(call.args)
            if (argument.keyword.value if argument.keyword else parameter_at(context.repo, key, position)) in buffers.get(key, ())
        ]

    def _made(self, name: str, lent: frozenset[str] = frozenset()) -> cst.Assign:
        value = self.context.build("vendored.as_variable({x})", x=cst.Name(name))
        return cst.Assign([cst.AssignTarget(_variable_of(name) if name in lent else cst.Name(name))], value)

    def _array_again(self, name: str) -> cst.Assign:
        return cst.Assign([cst.AssignTarget(cst.Name(name))], subscript(_variable_of(name)))


def _variable_of(name: str) -> cst.Name:
    return cst.Name(lent_name(name))
