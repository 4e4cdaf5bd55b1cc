"""Functions within functions that change a tensor of the outer one."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule


class BindOuterNames(Rule):
    """Declare names of the outer function: `def bump(): y.add_(1)` within a function that has `y` → `nonlocal y` before `y = y + 1`.

    Declines where no update of an outer tensor was noted.
    """

    KEEP = ("def f(x):\n    def g(y):\n        y = y + x\n        return y\n\n    return g(x)\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    y = torch.zeros_like(x)\n\n    def bump(value):\n        y.add_(value)\n\n    bump(1)\n    bump(x)\n"
            "    return y\n",
            "def f(x: jax.Array):\n    y = jnp.zeros_like(x)\n\n    def bump(value):\n        nonlocal y\n        y = y + value\n\n    bump(1)\n    bump(x)\n"
            "    return y\n",
        ),
    )

    def leave_FunctionDef(self, original: cst.FunctionDef, updated: cst.FunctionDef) -> cst.FunctionDef | None:
        names = self.context.nonlocals.get(".".join(self.context.path))
        if not names or not isinstance(updated.body, cst.IndentedBlock):
            return None
        line = cst.SimpleStatementLine([cst.Nonlocal([cst.NameItem(cst.Name(name)) for name in sorted(names)])])
        index = 1 if original.get_docstring() is not None else 0
        return updated.with_changes(body=updated.body.with_changes(body=[*updated.body.body[:index], line, *updated.body.body[index:]]))
