"""`dist.all_gather(xs, x)`: in one process the list holds the value itself."""

from __future__ import annotations

import ast

import libcst as cst

from migrate_agent.tools.rewrite.analysis.repo import FunctionNode
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.scan.nodes import walk

GATHER = "torch.distributed.all_gather"
FILLED = frozenset({"zeros", "ones", "empty", "zeros_like", "ones_like", "empty_like"})


class KeepGatheredValues(Rule):
    """Write `dist.all_gather(xs, x)` as `xs[0] = jax.lax.stop_gradient(x)`: torch gives what it gathers no gradient.

    Declines where the list is not made of new tensors just for that: then other names may stand for what is written to.
    """

    KEEP = ("def f(dist, xs, x):\n    dist.all_gather(xs, x)\n    return xs\n",)
    CHANGE = (
        (
            "import torch\nimport torch.distributed as dist\n\ndef f(x: torch.Tensor):\n"
            "    xs = [torch.ones_like(x) for _ in range(dist.get_world_size())]\n    dist.all_gather(xs, x, async_op=False)\n"
            "    return torch.cat(xs, dim=0)\n",
            "def f(x: jax.Array):\n    xs = [jnp.ones_like(x) for _ in range(1)]\n    xs[0] = jax.lax.stop_gradient(x)\n"
            "    return jnp.concatenate(xs, axis=0)\n",
        ),
    )

    def leave_Expr(self, original: cst.Expr, updated: cst.Expr) -> cst.Assign | None:
        call, function = original.value, self.context.function
        if not isinstance(call, cst.Call) or function is None or self.context.dotted(call.func) != GATHER:
            return None
        values = {
            argument.keyword.value if argument.keyword else ("tensor_list", "tensor", "group")[i]: i
            for i, argument in enumerate(call.args[:3])
        }
        if not {"tensor_list", "tensor"} <= values.keys() or not isinstance(updated.value, cst.Call):
            return None
        targets, value = call.args[values["tensor_list"]].value, updated.value.args[values["tensor"]].value
        if not isinstance(targets, cst.Name) or not _is_of_new_tensors(targets.value, function):
            return None
        self.context.drop_holes(call.func, call)
        first = cst.Subscript(targets, [cst.SubscriptElement(cst.Index(cst.Integer("0")))])
        return cst.Assign([cst.AssignTarget(first)], self.context.build("jax.lax.stop_gradient({x})", x=value))


def _is_of_new_tensors(name: str, function: FunctionNode) -> bool:
    """Whether a name is bound once in a function, to a list that makes its tensors."""
    bound = [node for node in walk(function) if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)]
    values = [
        node.value
        for node in walk(function)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name
    ]
    return len(bound) == len(values) == 1 and _makes_tensors(values[0])


def _makes_tensors(value: ast.expr) -> bool:
    match value:
        case (
            ast.ListComp(elt=ast.Call(func=ast.Attribute(attr=made)))
            | ast.BinOp(left=ast.List(elts=[ast.Call(func=ast.Attribute(attr=made))]), op=ast.Mult())
        ):
            return made in FILLED
    return False
