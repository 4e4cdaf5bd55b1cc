"""Lists and ranges as indices of tensors, which JAX takes as arrays only."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.rules.indexing.masked_rows import selected_here
from migrate_agent.tools.rewrite.rules.parameters.variables import variable
from migrate_agent.tools.rewrite.rules.rule import Rule

LIST, RANGE = ("list",), ("object:builtins.range",)


class IndexByArrays(Rule):
    """Index by arrays: `x[[0, 2]]` → `x[jnp.array([0, 2])]`, `x[range(n), y]` → `x[jnp.arange(n), y]`.

    Lists among several indices stay, since JAX takes these. Declines where what is indexed is not known to be
    a tensor.
    """

    KEEP = ("def f(rows: list, i):\n    return rows[i][range(3)]\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor, y: torch.Tensor, n: int):\n    return x[[0, 2]], x[range(n), y], x[:, [1, 0]]\n",
            "def f(x: jax.Array, y: jax.Array, n: int):\n    return x[jnp.array([0, 2])], x[jnp.arange(n), y], x[:, [1, 0]]\n",
        ),
    )

    def leave_Subscript(self, original: cst.Subscript, updated: cst.Subscript) -> cst.Subscript | None:
        if not (is_tensor(self.context.observed(original.value)) or variable(self, original.value)):
            return None
        if len(updated.slice) != len(original.slice):
            return None  # another rule has written another index
        alone = len(original.slice) == 1
        elements = [
            new.with_changes(slice=cst.Index(value)) if (value := self._array_index(old, new, alone)) is not None else new
            for old, new in zip(original.slice, updated.slice, strict=True)
        ]
        return updated.with_changes(slice=elements) if elements != list(updated.slice) else None

    def _array_index(self, old: cst.SubscriptElement, new: cst.SubscriptElement, alone: bool) -> cst.BaseExpression | None:
        if not isinstance(old.slice, cst.Index) or not isinstance(new.slice, cst.Index):
            return None
        source, value = old.slice.value, new.slice.value
        fact = self.context.observed(source)
        kinds = fact.kinds if fact else ()
        if (
            isinstance(source, cst.Call)
            and isinstance(source.func, cst.Name)
            and source.func.value == "range"
            and isinstance(value, cst.Call)
        ):
            return value.with_changes(func=self.context.build("jnp.arange"))
        # `x[[i, j]]` is one index, but a list of tensors is several, and a list of rows has become an array.
        if kinds == RANGE or (alone and kinds == LIST and not self._holds_tensors(source) and not self._is_selected_rows(source)):
            return self.context.build("jnp.array({value})", value=value)
        return None

    def _holds_tensors(self, node: cst.BaseExpression) -> bool:
        """A list written out with tensors in it, which torch takes as several indices."""
        return isinstance(node, cst.List) and any(
            not isinstance(e.value, (cst.Integer, cst.UnaryOperation)) and is_tensor(self.context.observed(e.value)) for e in node.elements
        )

    def _is_selected_rows(self, node: cst.BaseExpression) -> bool:
        """A list of rows that has become an array."""
        return isinstance(node, cst.Name) and node.value in selected_here(self.context)[1]
