"""Windows of one array at the places that another one names: gathered at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.rules.rule import Rule


class GatherWindows(Rule):
    """Gather windows at once: `torch.stack([data[i : i + n] for i in ix])` → `data[ix[:, None] + jnp.arange(n)]`.

    Outside of `jit` each slice of an array starts a program of its own. Declines where the length of a window depends on its place, for steps and
    conditions, and for places that were seen to be no row of numbers.
    """

    KEEP = ("import numpy as np\n\ndef f(data, ix, n):\n    return np.stack([data[i : i + n] for i in ix])\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(data: torch.Tensor, ix: torch.Tensor, n: int):\n    x = torch.stack([data[i : i + n] for i in ix])\n"
            "    y = torch.stack([data[i + 1 : i + 1 + n] for i in ix], dim=0)\n    return x, y\n",
            "def f(data: jax.Array, ix: jax.Array, n: int):\n    x = data[ix[:, None] + jnp.arange(n)]\n"
            "    y = data[ix[:, None] + 1 + jnp.arange(n)]\n    return x, y\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        if self.context.dotted(original.func) != "torch.stack" or not original.args or original.args[0].keyword:
            return None
        listed, rewritten = original.args[0].value, updated.args[0].value
        if not isinstance(listed, cst.ListComp) or not isinstance(rewritten, cst.ListComp) or not _along_first(original.args[1:]):
            return None
        offsets = self._offsets(listed)
        source = _source(rewritten.elt)
        if offsets is None or source is None:
            return None
        before, length = offsets
        places = "{ix}[:, None]" + "".join(f" + {text}" for text in before)
        return self.context.build(f"{{data}}[{places} + jnp.arange({' + '.join(length)})]", data=source, ix=rewritten.for_in.iter)

    def _offsets(self, listed: cst.ListComp) -> tuple[list[str], list[str]] | None:
        """What is added to each place before its window begins, and the length of the windows, as terms of sums; None for anything else."""
        loop = listed.for_in
        if loop.ifs or loop.inner_for_in is not None or loop.asynchronous is not None or not self._are_places(loop.iter):
            return None
        match listed.elt, loop.target:
            case (
                cst.Subscript(
                    value=cst.Name() | cst.Attribute() as data,
                    slice=[
                        cst.SubscriptElement(
                            slice=cst.Slice(lower=cst.BaseExpression() as lower, upper=cst.BaseExpression() as upper, step=None)
                        )
                    ],
                ),
                cst.Name(value=place),
            ) if is_tensor(self.context.observed(data)):
                begin, end = self._terms(lower), self._terms(upper)
                if begin is None or end is None or begin.count(place) != 1 or Counter(begin) - Counter(end):
                    return None
                length = list((Counter(end) - Counter(begin)).elements())
                begin.remove(place)
                names = m.findall(data, m.Name(place))
                return (begin, length) if length and place not in length and not names else None
        return None

    def _are_places(self, node: cst.BaseExpression) -> bool:
        """Whether an expression is a row of whole numbers, as far as it was seen."""
        fact = self.context.observed(node)
        if not isinstance(node, cst.Name) or fact is None or not is_tensor(fact):
            return False
        return all(len(shape) == 1 for shape in fact.shapes) and all("int" in dtype for dtype in fact.dtypes)

    def _terms(self, node: cst.BaseExpression) -> list[str] | None:
        """The terms of a sum of names and whole numbers; None for anything else."""
        match node:
            case cst.BinaryOperation(left=left, operator=cst.Add(), right=right):
                terms = [self._terms(left), self._terms(right)]
                return None if terms[0] is None or terms[1] is None else [*terms[0], *terms[1]]
            case cst.Integer() | cst.Name():
                return [cst.Module([]).code_for_node(node)]
            case cst.Attribute() if (fact := self.context.observed(node)) is not None and set(fact.kinds) == {"int"}:
                return [cst.Module([]).code_for_node(node)]
        return None


def _source(window: cst.BaseExpression) -> cst.BaseExpression | None:
    """What a window is cut out of: by a slice, or as `CutAtPlaces` has rewritten it before."""
    match window:
        case cst.Subscript(value=source):
            return source
        case cst.Call(func=cst.Attribute(attr=cst.Name("dynamic_slice_in_dim")), args=[first, *_]):
            return first.value
    return None


def _along_first(arguments: Sequence[cst.Arg]) -> bool:
    """Whether further arguments of `torch.stack` say nothing, or the first axis."""
    return all(
        (argument.keyword is None or argument.keyword.value == "dim") and m.matches(argument.value, m.Integer("0"))
        for argument in arguments
    )
