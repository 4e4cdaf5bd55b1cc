"""Functions that change a buffer of their caller, and give back something else: they take the variable itself."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.analysis.argument_writes.parameter_writes import parameter_at
from migrate_agent.tools.rewrite.rules.parameters.passed_variables import callees
from migrate_agent.tools.rewrite.rules.rule import Rule


class TakeBuffers(Rule):
    """Make variables of what a function changes for its caller: `y = norm(x, self.mean)` hands over the variable, and `norm` begins with
    `mean = as_variable(mean)`, so that it takes arrays too.

    A local tensor that is read after such a call becomes a variable before it. What is a variable `PassVariables` reads and
    `ReplaceInplaceUpdates` writes as `mean[...]`. Declines where the argument is not read again, or a change would not be seen
    (`ReturnChangedArguments` leaves the hole).
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

    def leave_SimpleStatementLine(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | None:
        statements = self._made_before(original)
        return updated.with_changes(body=[*statements, *updated.body]) if statements else None

    def leave_SimpleStatementSuite(
        self, original: cst.SimpleStatementSuite, updated: cst.SimpleStatementSuite
    ) -> cst.SimpleStatementSuite | None:
        statements = self._made_before(original)
        return updated.with_changes(body=[*statements, *updated.body]) if statements else None

    def _made_before(self, statement: cst.CSTNode) -> list[cst.Assign]:
        """The assignments that make variables of what the calls in a statement change."""
        names = self.context.randomness.made_buffers.get(self.context.function_key, frozenset())
        calls = [node for node in m.findall(statement, m.Call()) if isinstance(node, cst.Call)] if names else []
        handed = [value for call in calls for value in self._handed(call)]
        return [self._made(name) for name in dict.fromkeys(value.value for value in handed if isinstance(value, cst.Name)) if name in names]

    def _handed(self, call: cst.Call) -> list[cst.BaseExpression]:
        """The arguments of a call that it changes."""
        context, buffers = self.context, self.context.randomness.buffers
        return [
            argument.value
            for key in callees(context, call)
            for position, argument in enumerate(call.args)
            if (argument.keyword.value if argument.keyword else parameter_at(context.repo, key, position)) in buffers.get(key, ())
        ]

    def _made(self, name: str) -> cst.Assign:
        value = self.context.build("vendored.as_variable({x})", x=cst.Name(name))
        return cst.Assign([cst.AssignTarget(cst.Name(name))], value)
