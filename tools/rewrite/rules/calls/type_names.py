"""Comparisons of tensors' types, and of the names of these."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.ops.dtype import LEGACY_TYPES


class CompareDtypes(Rule):
    """Compare dtypes in place of the names of tensors' types: `x.type() == y.type()` → `x.dtype == y.dtype`, and with a name that is written out; convert
    to them: `x.type(y.type())` → `x.astype(y.dtype)`, also through a local name and the methods that it is handed to.

    Where tensors lie counts for nothing: `"torch.cuda.FloatTensor"` is `jnp.float32`. Declines in any other use of a name.
    """

    KEEP = ("def f(x, y):\n    return type(x) == type(y)\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n    kind = y.type()\n    return x.type(y.type()) + x.type(kind)\n",
            "def f(x: jax.Array, y: jax.Array):\n    kind = y.dtype\n    return x.astype(y.dtype) + x.astype(kind)\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def forward(self, x: torch.Tensor):\n        kind = x.type()\n"
            "        return self.grid(2, kind) + x\n\n    @staticmethod\n    def grid(n, kind):\n        return torch.arange(n).type(kind)\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        pass\n\n    def __call__(self, x: jax.Array):\n"
            "        kind = x.dtype\n        return self.grid(2, kind) + x\n\n"
            "    @staticmethod\n    def grid(n, kind):\n        return jnp.arange(n).astype(kind)\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n    other = x.data.type() != y.type()\n    return x + y, other\n",
            "def f(x: jax.Array, y: jax.Array):\n    other = x.dtype != y.dtype\n    return x + y, other\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    return x.type() == 'torch.cuda.HalfTensor'\n",
            "def f(x: jax.Array):\n    return x.dtype == jnp.float16\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        if not self._is_name(original) or not isinstance(updated.func, cst.Attribute):
            return None
        if not (self._is_compared() or self._is_converted_to(self.context.parent()) or self._is_kept_for_conversions(original)):
            return None
        match updated.func.value:
            case cst.Call(args=[cst.Arg(value=inner)]) if _reads_data(original):  # a dtype has no gradient to stop
                return cst.Attribute(inner, cst.Name("dtype"))
        return cst.Attribute(updated.func.value, cst.Name("dtype"))

    def leave_SimpleString(self, original: cst.SimpleString, updated: cst.SimpleString) -> cst.BaseExpression | None:
        if _legacy(original) and self._is_compared():
            return self.context.build(LEGACY_TYPES[_legacy(original)])
        return None

    def _is_name(self, node: cst.BaseExpression) -> bool:
        """Whether this is `x.type()` of a tensor."""
        match node:
            case cst.Call(func=cst.Attribute(value=tensor, attr=cst.Name("type")), args=[]):
                return is_tensor(self.context.observed(tensor))
        return False

    def _is_converted_to(self, argument: cst.CSTNode | None) -> bool:
        """Whether the node is the argument of `x.type(…)`."""
        call = self.context.parent(2)
        return isinstance(argument, cst.Arg) and _converts(call) and isinstance(call, cst.Call) and call.args[0] is argument

    def _is_kept_for_conversions(self, node: cst.Call) -> bool:
        """Whether the node is bound to a local name that nothing but such calls reads, here or in methods of the class that are handed it."""
        match self.context.parent():
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value) if value is node:
                function = next((one for one in reversed(self.context.stack) if isinstance(one, cst.FunctionDef)), None)
                return function is not None and self._converts_alone(function, name, frozenset())
        return False

    def _converts_alone(self, function: cst.FunctionDef, name: str, passed: frozenset[str]) -> bool:
        """Whether a function binds a name once and reads it in `x.type(…)` alone, and in calls of methods that do. `passed`: functions on the way here."""
        calls = [call for call in m.findall(function.body, m.Call()) if isinstance(call, cst.Call)]
        read = 0
        for call in calls:
            handed = [index for index, argument in enumerate(call.args) if m.matches(argument, m.Arg(m.Name(name), keyword=None))]
            if handed and not _converts(call) and not all(self._method_converts(call, index, passed) for index in handed):
                return False
            read += len(handed)
        parameter = any(one.name.value == name for one in function.params.params)
        return len(m.findall(function.body, m.Name(name))) == read + (not parameter)

    def _method_converts(self, call: cst.Call, index: int, passed: frozenset[str]) -> bool:
        """Whether a method of the class at hand, called by way of `self`, converts alone by its positional argument at a index."""
        match call.func:
            case cst.Attribute(value=cst.Name("self"), attr=cst.Name(called)):
                owner = next((one for one in reversed(self.context.stack) if isinstance(one, cst.ClassDef)), None)
                body = owner.body.body if owner is not None else ()
                method = next((one for one in body if isinstance(one, cst.FunctionDef) and one.name.value == called), None)
                if method is None or called in passed:
                    return False
                static = any(m.matches(one.decorator, m.Name("staticmethod")) for one in method.decorators)
                names = [one.name.value for one in method.params.params][0 if static else 1 :]
                return index < len(names) and self._converts_alone(method, names[index], passed | {called})
        return False

    def _is_compared(self) -> bool:
        """Whether the node is compared, and all that it is compared with are such names, one of them a tensor's."""
        parent = self.context.parent(2) if isinstance(self.context.parent(), cst.ComparisonTarget) else self.context.parent()
        if not isinstance(parent, cst.Comparison) or not all(
            isinstance(one.operator, cst.Equal | cst.NotEqual) for one in parent.comparisons
        ):
            return False
        sides = [parent.left, *(one.comparator for one in parent.comparisons)]
        return any(map(self._is_name, sides)) and all(self._is_name(side) or _legacy(side) for side in sides)


def _converts(call: cst.CSTNode | None) -> bool:
    """Whether this is `x.type(…)`."""
    match call:
        case cst.Call(func=cst.Attribute(attr=cst.Name("type")), args=[cst.Arg(keyword=None)]):
            return True
    return False


class CompareTypesOfTensors(Rule):
    """Ask for an instance where a type is compared with torch's tensor: `type(x) == torch.Tensor` → `isinstance(x, jax.Array)`.

    What is computed with is of a class that derives from `jax.Array`, and of another one while it is traced. A parameter's type is another one in torch,
    so a question of one stays.
    """

    KEEP = ("def f(x, y):\n    return type(x) == type(y), type(x) is list\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    return type(x) == torch.Tensor or type(x) is torch.Tensor\n",
            "def f(x: jax.Array):\n    return isinstance(x, jax.Array) or isinstance(x, jax.Array)\n",
        ),
        (
            "import torch\n\ndef f(x):\n    if type(x) is not torch.Tensor:\n        x = torch.tensor(x)\n    return x\n",
            "def f(x):\n    if not isinstance(x, jax.Array):\n        x = jnp.array(x)\n    return x\n",
        ),
    )

    def leave_Comparison(self, original: cst.Comparison, updated: cst.Comparison) -> cst.BaseExpression | None:
        match original:
            case cst.Comparison(
                left=cst.Call(func=cst.Name("type"), args=[cst.Arg(value=asked)]),
                comparisons=[
                    cst.ComparisonTarget(operator=cst.Equal() | cst.Is() | cst.NotEqual() | cst.IsNot() as operator, comparator=kind)
                ],
            ) if self.context.dotted(kind) == "torch.Tensor" and not self.context.is_parameter_name(asked):
                value = cst.ensure_type(updated.left, cst.Call).args[0].value
                test = self.context.build("isinstance({value}, jax.Array)", value=value)
                unequal = isinstance(operator, cst.NotEqual | cst.IsNot)
                return self.context.parenthesise(cst.UnaryOperation(cst.Not(), test)) if unequal else test
        return None


def _reads_data(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and isinstance(call.func.value, cst.Attribute) and call.func.value.attr.value == "data"


def _legacy(node: cst.BaseExpression) -> str:
    """The name of a type of floats that is written out, without its place; else "". What integers are in JAX is up to its configuration."""
    value = node.evaluated_value if isinstance(node, cst.SimpleString) else ""
    name = value.replace(".cuda", "") if isinstance(value, str) else ""
    return name if LEGACY_TYPES.get(name, "").startswith("jnp.float") else ""
