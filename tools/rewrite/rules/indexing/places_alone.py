"""Values or places alone, of functions of torch that give both: `torch.max(x, 1)[1]`."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.scan.nodes import walk

VALUES, PLACES = 0, 1
PARTS: Mapping[str, Mapping[int, str]] = {
    "max_with_indices": {PLACES: "jnp.argmax({x}, axis={dim}, keepdims={keepdim})"},
    "min_with_indices": {PLACES: "jnp.argmin({x}, axis={dim}, keepdims={keepdim})"},
    "topk": {VALUES: "vendored.largest_along_last({x}, {k})[0]", PLACES: "vendored.largest_along_last({x}, {k})[1]"},
    "sort": {VALUES: "jnp.sort({x}, axis={dim})", PLACES: "jnp.argsort({x}, axis={dim})"},
}
"""Helper → the part of its result → what gives that part alone. Of the largest element alone the gradient would be shared by equal ones."""
PARAMETERS: Mapping[str, tuple[str, ...]] = {"sort": ("x", "dim"), "topk": ("x", "k", "dim")}
FIELDS = {"values": VALUES, "indices": PLACES}


class TakePartsAlone(Rule):
    """Write what is taken of values and places alone: `max_with_indices(x, 1)[1]` → `jnp.argmax(x, axis=1)`, `_, i = sort(x, -1)` → `i = jnp.argsort(x, axis=-1)`.

    In plain style. Declines for arrays that may have no axes, and where values come in falling order.
    """

    KEEP = ("def f(x):\n    return max(x, 1)[1]\n",)
    PLAIN = (
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    places = torch.max(x, 1)[1]\n    _, others = torch.min(x, dim=-2, keepdim=True)\n"
            "    return places, others, torch.sort(x, 1)[0], x.sort(dim=1).indices\n",
            "def f(x: jax.Array):\n    places = jnp.argmax(x, axis=1)\n    others = jnp.argmin(x, axis=-2, keepdims=True)\n"
            "    return places, others, jnp.sort(x, axis=1), jnp.argsort(x, axis=1)\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    return torch.max(x, 0)[1], x.max(1)[0], x.sort(1, descending=True)[1]\n",
            "def f(x: jax.Array):\n    return max_with_indices(x, 0)[1], max_with_indices(x, 1)[0], sort(x, 1, descending=True)[1]\n",
        ),
    )

    def leave_Subscript(self, original: cst.Subscript, updated: cst.Subscript) -> cst.BaseExpression | None:
        index = m.extract(
            updated, m.Subscript(slice=[m.SubscriptElement(m.Index(m.Integer(m.SaveMatchedNode(m.MatchRegex("[01]"), "part"))))])
        )
        return self._part(original.value, updated.value, int(str(index["part"]))) if index else None

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        part = FIELDS.get(updated.attr.value)
        return self._part(original.value, updated.value, part) if part is not None else None

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.Assign | None:
        pair = updated.targets[0].target
        if len(updated.targets) != 1 or not isinstance(pair, cst.Tuple) or len(pair.elements) != 2:
            return None
        unused = [i for i, element in enumerate(pair.elements) if m.matches(element, m.Element(m.Name("_")))]
        if len(unused) != 1 or self._reads_unused():
            return None
        part = 1 - unused[0]
        target, value = pair.elements[part].value, self._part(original.value, updated.value, part)
        if value is None or not isinstance(target, cst.BaseAssignTargetExpression) or isinstance(pair.elements[part], cst.StarredElement):
            return None
        return updated.with_changes(targets=[cst.AssignTarget(target)], value=value)

    def _reads_unused(self) -> bool:
        function = self.context.function
        return function is None or any(isinstance(n, ast.Name) and n.id == "_" and isinstance(n.ctx, ast.Load) for n in walk(function))

    def _part(self, old: cst.BaseExpression, call: cst.BaseExpression, part: int) -> cst.BaseExpression | None:
        if (
            not self.context.repo.is_plain
            or not isinstance(call, cst.Call)
            or not isinstance(call.func, cst.Name)
            or not isinstance(old, cst.Call)
        ):
            return None
        helper = call.func.value
        template, arguments = PARTS.get(helper, {}).get(part), _named(call, PARAMETERS.get(helper, ("x", "dim", "keepdim")))
        if template is None or helper not in self.context.vendored or not arguments or not self._has_axes(old, arguments["dim"]):
            return None
        if "{dim}" not in template and not self._is_last(old, _number(arguments["dim"])):
            return None
        if "keepdim" not in arguments:
            template = template.replace(", keepdims={keepdim}", "")
        return self.context.parenthesise(self.context.build(template, **arguments))

    def _has_axes(self, call: cst.Call, axis: cst.BaseExpression) -> bool:
        """Whether what is reduced, the receiver or the first argument, is known to have axes: a scalar has axes 0 and -1 in torch."""
        return _number(axis) not in (0, -1, None) or (bool(shapes := self._shapes(call)) and all(shapes))

    def _is_last(self, call: cst.Call, axis: int | None) -> bool:
        """Whether an axis is the last one of what is reduced."""
        return axis == -1 or (axis is not None and {len(shape) for shape in self._shapes(call)} == {axis + 1})

    def _shapes(self, call: cst.Call) -> Collection[Sequence[int]]:
        """The shapes that were observed of what is reduced; none where it may be no tensor."""
        method = isinstance(call.func, cst.Attribute) and not self.context.dotted(call.func)
        value = call.func.value if method and isinstance(call.func, cst.Attribute) else call.args[0].value
        fact = self.context.observed(value)
        return fact.shapes if fact is not None and is_tensor(fact) else ()


def _number(node: cst.BaseExpression) -> int | None:
    """The value of an integer that is written out."""
    try:
        value = ast.literal_eval(cst.Module([]).code_for_node(node))
    except ValueError:
        return None
    return value if type(value) is int else None


def _named(call: cst.Call, names: tuple[str, ...]) -> dict[str, cst.BaseExpression]:
    """The arguments of a helper by their names, its axis among them; none where others are passed."""
    positional = dict(enumerate(names))
    arguments = {
        argument.keyword.value if argument.keyword else positional.get(i, ""): argument.value for i, argument in enumerate(call.args)
    }
    if any(argument.star for argument in call.args) or not arguments.keys() <= set(names):
        return {}
    last = cst.UnaryOperation(cst.Minus(), cst.Integer("1"))
    return {"dim": last, **arguments}
