"""`torch.nn.init.*`: parameters get new values, from keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.analysis.initialising_lambdas import takes_tensor
from migrate_agent.tools.rewrite.rules.apply_tables import expand, tidy
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.mutation.writes import alias_written, part_written
from migrate_agent.tools.rewrite.rules.parameters.plain_values import written_plainly
from migrate_agent.tools.rewrite.rules.parameters.variables import variable, written
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.initialisers import AS_VALUES, CONSTANTS, ROWS
from migrate_agent.tools.rewrite.tables.registry import Refuse
from migrate_agent.tools.rewrite.tables.signatures import BindError, bind, parse_signature

FILLS: Mapping[float, str] = {0.0: "zeros", 1.0: "ones"}
"""Constants that have initialisers of their own."""


def initialiser(context: Context, call: cst.BaseExpression, is_statement: bool) -> bool:
    """Whether a call's function is a value that was seen to be of `torch.nn.init`, or in a statement a lambda that does what these do."""
    if not isinstance(call, cst.Call) or context.dotted(call.func) or not call.args:
        return False
    known, others = _kinds_of(context, call, is_statement)
    return bool(known) and not others


def _kinds_of(context: Context, call: cst.Call, is_statement: bool) -> tuple[list[str], list[str]]:
    """What a call's function was seen to be: initialisers, and others."""
    fact = context.observed(call.func)
    kinds = [kind.removeprefix("partial:") for kind in fact.kinds] if fact else []
    initialises = is_statement and takes_tensor(context.observed(call.args[0].value))
    lambdas = context.randomness.initialising.keys() if initialises else ()
    known = [kind for kind in kinds if kind.removesuffix("_").removeprefix("function:torch.nn.init.") in AS_VALUES or kind in lambdas]
    return known, [kind for kind in kinds if kind not in known]


def _with_branch(value: cst.BaseExpression, choice: cst.IfExp, branch: cst.BaseExpression) -> cst.BaseExpression:
    """An expression with one branch in every place of a choice: the values of a parameter are computed from its shape too."""

    class Branch(cst.CSTTransformer):
        def leave_IfExp(self, original_node: cst.IfExp, updated_node: cst.IfExp) -> cst.BaseExpression:
            return branch if original_node.deep_equals(choice) else updated_node

    changed = value.visit(Branch())
    assert isinstance(changed, cst.BaseExpression)
    return changed


class ReplaceInitialisers(Rule):
    """Replace initialisers by assignments: `nn.init.normal_(self.w, std=0.02)` → `self.w[...] = init_normal(rngs.params(), self.w, std=0.02)`.

    Nested in an expression it becomes the value itself. As a value, `init = nn.init.normal_`, it is the
    vendored function, and `init(self.w)` → `self.w[...] = init(rngs.params(), self.w)`. So is a lambda:
    `lambda w: nn.init.zeros_(w)` → `lambda key, w: jnp.zeros_like(w)`. Declines (a hole) where it is not known whether the target is a variable.
    """

    KEEP = ("def init(x):\n    return x\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.w = torch.Tensor(3, 4)\n        nn.init.constant_(self.w, 2)\n\n    def forward(self, x):\n        return x @ self.w\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.w = jnp.empty((3, 4), dtype=jnp.float32)\n"
            "        self.w = jnp.full_like(self.w, 2)\n\n    def __call__(self, x):\n        return x @ self.w\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.w = nn.Parameter(torch.empty(3, 4))\n        nn.init.normal_(self.w, std=0.02)\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.w = nnx.Param(jnp.empty((3, 4)))\n"
            "        self.w[...] = init_normal(rngs.params(), self.w, std=0.02)\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.w = nn.Parameter(torch.empty(3, 4))\n        nn.init.constant_(torch.as_tensor(self.w), 1)\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.w = nnx.Param(jnp.empty((3, 4)))\n"
            "        self.w[...] = jnp.ones_like(self.w[...])\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.fc = nn.Linear(3, 4)\n        self.fc.bias = nn.init.zeros_(self.fc.bias)\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.fc = Linear(3, 4, rngs=rngs)\n"
            "        self.fc.bias[...] = jnp.zeros_like(self.fc.bias)\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.conv = nn.Conv2d(3, 4, 2)\n        w = self.conv.weight.data\n        nn.init.zeros_(w.view([w.shape[0], -1]))\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.conv = Conv2d(3, 4, 2, rngs=rngs)\n"
            "        w = self.conv.weight[...]\n        w = jnp.zeros_like(w.reshape([w.shape[0], -1])).reshape(w.shape)\n"
            "        self.conv.weight = w\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.w = nn.Parameter(torch.empty(3, 4))\n        w = self.w\n        nn.init.normal_(w)\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.w = nnx.Param(jnp.empty((3, 4)))\n"
            "        w = self.w[...]\n        w = init_normal(rngs.params(), w)\n        self.w[...] = w\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.fc = nn.Linear(3, 4)\n        self.reset(self.fc)\n\n    def reset(self, layer: nn.Linear):\n"
            "        w = layer.weight\n        return nn.init.normal_(w)\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.fc = Linear(3, 4, rngs=rngs)\n"
            "        self.reset(self.fc, rngs=rngs)\n\n    def reset(self, layer: Linear, *, rngs: nnx.Rngs):\n"
            '        w = layer.weight\n        w = init_normal(rngs.params(), w)\n        overwrite(layer, "weight", w)\n        return w\n',
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
            "        self.w = nn.Parameter(torch.empty(n, 3))\n        nn.init.constant_(self.w[:, :2], 1.5)\n"
            "        nn.init.zeros_(self.w.data[:, 2])\n        nn.init.normal_(self.w[0])\n",
            "class M(nnx.Module):\n    def __init__(self, n, *, rngs: nnx.Rngs):\n        self.w = nnx.Param(jnp.empty((n, 3)))\n"
            "        self.w[...] = self.w[...].at[:, :2].set(1.5)\n        self.w[...] = self.w[...].at[:, 2].set(0)\n"
            "        self.w[...] = self.w[...].at[0].set(init_normal(rngs.params(), self.w[0]))\n",
        ),
    )
    PLAIN = (
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.fc = nn.Linear(3, 4)\n        for m in self.modules():\n            if isinstance(m, nn.Linear):\n"
            "                m.weight.data = nn.init.xavier_uniform_(m.weight.data, gain=2.0)\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n"
            "        self.fc = nnx.Linear(3, 4, kernel_init=fan_in_kernel, bias_init=fan_in_bias(3), rngs=rngs)\n"
            "        for _, m in nnx.iter_modules(self):\n            if isinstance(m, nnx.Linear):\n"
            "                m.kernel[...] = init_xavier_uniform(rngs.params(), m.kernel[...].T, gain=2.0).T\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, s):\n        super().__init__()\n"
            "        self.w = nn.Parameter(torch.empty(3, 4))\n        nn.init.normal_(self.w, std=s)\n        nn.init.uniform_(self.w, -1, 1)\n"
            "        nn.init.normal_(self.w, mean=1.0)\n",
            "class M(nnx.Module):\n    def __init__(self, s, *, rngs: nnx.Rngs):\n"
            "        self.w = nnx.Param(s * jax.random.normal(rngs.params(), (3, 4)))\n"
            "        self.w[...] = jax.random.uniform(rngs.params(), self.w.shape, self.w.dtype, -1, 1)\n"
            "        self.w[...] = init_normal(rngs.params(), self.w, mean=1.0)\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, one):\n        super().__init__()\n"
            "        self.w = nn.Parameter(torch.empty(3, 4))\n        self.v = nn.Parameter(torch.empty(2, 4))\n"
            "        nn.init.normal_(self.w if one else self.v, std=0.02)\n",
            "class M(nnx.Module):\n    def __init__(self, one, *, rngs: nnx.Rngs):\n        self.w = nnx.Param(jnp.empty((3, 4)))\n"
            "        self.v = nnx.Param(jnp.empty((2, 4)))\n        if one:\n"
            "            self.w[...] = 0.02 * jax.random.normal(rngs.params(), self.w.shape, self.w.dtype)\n        else:\n"
            "            self.v[...] = 0.02 * jax.random.normal(rngs.params(), self.v.shape, self.v.dtype)\n",
        ),
    )

    def leave_Lambda(self, original: cst.Lambda, updated: cst.Lambda) -> cst.Lambda | None:
        if not self.context.initialises(original):
            return None
        parameters = updated.params
        return updated.with_changes(params=parameters.with_changes(params=[cst.Param(cst.Name("key")), *parameters.params]))

    def _row_name(self, call: cst.BaseExpression) -> str:
        dotted = self.context.dotted(call.func) if isinstance(call, cst.Call) else ""
        name = dotted.removeprefix("torch.nn.init.").removesuffix("_")
        return name if dotted.startswith("torch.nn.init.") and name in ROWS else ""

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        is_statement = isinstance(self.context.parent(), cst.Expr)
        name, value = self._row_name(original), initialiser(self.context, original, is_statement)
        if not name and not value:
            known, others = (
                _kinds_of(self.context, original, is_statement) if original.args and not self.context.dotted(original.func) else ([], [])
            )
            if known and others:
                reason = f"sometimes an initialiser, which takes a key and gives the values, and sometimes {others[0]}"
                self.context.hole(original, reason, "mixed-callee")
            return None
        try:
            return self.context.parenthesise(self._new_value(name, original, updated) if name else self._call_with_key(original, updated))
        except (Refuse, BindError) as refusal:
            self.context.hole(original, f"torch.nn.init.{name or 'a'}_: {refusal}", getattr(refusal, "code", "unbound-call"))
            return None

    def _new_value(self, name: str, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        text, template = ROWS[name]
        bound = bind(parse_signature(text), updated.args, original.args)
        target = bound.values["tensor"]
        if (
            (source := bound.sources.get("tensor")) is not None
            and self._without_as_tensor(source) is not source
            and isinstance(target, cst.Call)
        ):
            target = target.args[0].value
            bound = type(bound)({**bound.values, "tensor": target}, bound.variadic, bound.dropped, bound.sources)
        match target:
            case cst.Call(func=cst.Attribute(value=cst.Name("lax"), attr=cst.Name("stop_gradient")), args=[cst.Arg(value=inside)]):
                # `w.data`: what is asked for its shape alone has no gradient anyway.
                target = inside
                bound = type(bound)({**bound.values, "tensor": target}, bound.variadic, bound.dropped, bound.sources)
        if name in CONSTANTS and self._is_part(bound.sources["tensor"]):
            return expand(self.context, CONSTANTS[name], bound, f"nn.init.{name}_")
        if name == "constant" and isinstance(number := bound.values["val"], (cst.Integer, cst.Float)):
            template = ROWS[FILLS.get(float(number.evaluated_value), name)][1]
        # `nn.init.zeros_(nn.Parameter(x))` gives the parameter, not its values: they go inside the new variable.
        fresh = isinstance(target, cst.Call) and isinstance(target.func, cst.Attribute) and target.func.attr.value in ("Param", "Variable")
        if fresh and isinstance(target, cst.Call) and not isinstance(self.context.parent(), cst.Expr):
            inner = {**bound.values, "tensor": target.args[0].value}
            value = expand(self.context, template, type(bound)(inner, bound.variadic, bound.dropped, bound.sources), f"nn.init.{name}_")
            return target.with_changes(args=[cst.Arg(value)])
        return expand(self.context, template, bound, f"nn.init.{name}_")

    def _call_with_key(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        """The call of an initialiser that is a value: it is given a key first."""
        key = self.context.key()
        if key is None:
            raise Refuse("an initialiser is called where no nnx.Rngs is at hand", "randomness")
        return updated.with_changes(args=tidy([cst.Arg(key), *updated.args]))

    def _without_as_tensor(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """`torch.as_tensor(w)` of a parameter is `w`."""
        if isinstance(node, cst.Call) and len(node.args) == 1 and self.context.dotted(node.func) == "torch.as_tensor":
            return node.args[0].value
        return node

    def leave_Expr(self, original: cst.Expr, updated: cst.Expr) -> cst.BaseSmallStatement | None:
        target = self._target_of(original.value, is_statement=True)
        # An unchanged call was refused, and its hole stands. One of two targets is written where the whole line is seen.
        if target is None or updated.value is original.value or isinstance(target, cst.IfExp):
            return None
        return self._write(original, target, updated.value)

    def leave_SimpleStatementLine(self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine) -> cst.If | None:
        """`nn.init.zeros_(self.w if small else self.fc.weight)`: each of both is written in a branch of its own."""
        match original.body, updated.body:
            case [cst.Expr(value=before) as statement], [cst.Expr(value=after)] if before is not after:
                target = self._target_of(before, is_statement=True)
            case _:
                return None
        if not isinstance(target, cst.IfExp):
            return None
        chosen = next((node for node in m.findall(after, m.IfExp()) if isinstance(node, cst.IfExp)), None)
        if chosen is None:
            return None
        branches = []
        for own, new in ((target.body, chosen.body), (target.orelse, chosen.orelse)):
            written_branch = self._write(statement, own, _with_branch(after, chosen, new))
            if written_branch is None:
                return None
            branches.append(cst.IndentedBlock([cst.SimpleStatementLine([written_branch])]))
        return cst.If(chosen.test, branches[0], cst.Else(branches[1]), leading_lines=updated.leading_lines)

    def leave_Return(self, original: cst.Return, updated: cst.Return) -> cst.FlattenSentinel[cst.BaseSmallStatement] | None:
        """`return nn.init.zeros_(w)`, which writes to the parameter and gives it."""
        target = self._target_of(original.value, is_statement=False) if original.value is not None else None
        if not isinstance(target, (cst.Name, cst.Attribute)) or updated.value is None or updated.value is original.value:
            return None
        write = self._write(original, target, updated.value)
        if write is None:
            return None
        writes = write.nodes if isinstance(write, cst.FlattenSentinel) else (write,)
        return cst.FlattenSentinel([*writes, cst.Return(target)])

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.BaseSmallStatement | None:
        """`layer.weight = nn.init.zeros_(layer.weight)`, which sets the parameter to itself."""
        assigned, target = original.targets[0].target, self._target_of(original.value, is_statement=False)
        if target is None or updated.value is original.value or len(original.targets) > 1 or not isinstance(assigned, cst.Attribute):
            return None
        return self._write(original, target, updated.value) if assigned.deep_equals(target) else None

    def _target_of(self, call: cst.BaseExpression, is_statement: bool) -> cst.BaseExpression | None:
        """What an original call initialises, where it is one that does."""
        if not isinstance(call, cst.Call) or not (self._row_name(call) or initialiser(self.context, call, is_statement)):
            return None
        return self._without_as_tensor(next((a.value for a in call.args if a.keyword and a.keyword.value == "tensor"), call.args[0].value))

    def _is_part(self, target: cst.BaseExpression) -> TypeGuard[cst.Subscript]:
        """Whether what is initialised is a part of a tensor, and no element of a container."""
        if not isinstance(target, cst.Subscript):
            return False
        base = target.value
        # Of `self.weights[i][:, 0]` what the list holds is the tensor.
        while not (whole := self._is_tensor(base)) and (
            isinstance(base, cst.Subscript) or (isinstance(base, cst.Attribute) and base.attr.value == "data")
        ):
            base = base.value
        return whole or (self.context.observed(base) is None and variable(self, base))

    def _is_tensor(self, node: cst.BaseExpression) -> bool:
        fact = self.context.observed(node)
        return fact is not None and bool(fact.kinds) and set(fact.kinds) <= {"parameter", "tensor"}

    def _write(
        self, original: cst.BaseSmallStatement, target: cst.BaseExpression, value: cst.BaseExpression
    ) -> cst.BaseSmallStatement | None:
        try:
            if self._is_part(target):
                return part_written(self.context, target, value)
            if (shared := alias_written(self.context, target, value)) is not None:
                return shared
            return written_plainly(self.context, written(self, target, value))
        except Refuse as refusal:
            self.context.hole(original, refusal.reason, refusal.code)
            return None
