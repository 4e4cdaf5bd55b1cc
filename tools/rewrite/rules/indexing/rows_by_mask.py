"""Rows that a mask selects: all there may be, of which those that it does not select are left out where results are written."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.indexing.masked_rows import selected_here
from migrate_agent.tools.rewrite.rules.rule import Rule


class SelectRowsByMask(Rule):
    """Compute all rows that a mask may select: `rows, = torch.where(mask)` → `rows, = padded_nonzero(mask)`, where `rows` only index what is read and written.

    Past the last selected row, the indices lie beyond the end: reads give the last row, and writes leave
    them out. A test whether there are any rows is always passed. Declines where anything else is done with
    the indices, since its shape would depend on values.
    """

    KEEP = ("import numpy as np\n\ndef f(x, y):\n    rows, = np.where(x)\n    y[rows] = 1\n    return y\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor, mask: torch.Tensor, g):\n    out = torch.zeros_like(x)\n    (rows,) = torch.where(mask)\n"
            "    places = rows.tolist()\n    out.index_add_(0, rows, g(x[places]))\n    return out\n",
            "def f(x: jax.Array, mask: jax.Array, g):\n    out = jnp.zeros_like(x)\n    (rows,) = padded_nonzero(mask)\n"
            "    places = rows\n    out = index_add(out, 0, rows, g(x[places]))\n    return out\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        calls, names = selected_here(self.context)
        func = original.func
        if self.context.span(original) in calls:
            value = updated.func.value if not updated.args or updated.args[0].keyword else updated.args[0].value  # type: ignore[attr-defined]
            self.context.notes.append(
                f"{self.context.file.file.path}:{self.context.span(original).line}: all the rows that a mask may select are computed, and those that it "
                "does not select are left out where results are written"
            )
            return self.context.build("vendored.padded_nonzero({x})", x=value)
        listed = isinstance(func, cst.Attribute) and func.attr.value == "tolist" and isinstance(func.value, cst.Name)
        return updated.func.value if listed and func.value.value in names else None  # type: ignore[attr-defined]
