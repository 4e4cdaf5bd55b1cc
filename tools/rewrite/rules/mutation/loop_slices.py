"""Parts of a tensor that a loop changes in place are put together again after the loop."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.loop_slices import Part, parts_name
from migrate_agent.tools.rewrite.rules.rule import Rule


class CollectLoopSlices(Rule):
    """Put slices that a loop changes together again: `for row in x: row.add_(1)` → the new rows in `x_parts`, and `x = put_parts(x, x_parts)` after the loop.

    `x.split(…)` and others likewise. Whether it can be done is decided where the slice is changed: see
    `analysis/loop_slices.py`. Declines for loops without a note from there.
    """

    KEEP = ("def f(rows):\n    for row in rows:\n        row.append(1)\n    return rows\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(q: torch.Tensor):\n    o = torch.zeros_like(q)\n    for a, b in zip(q.split(4, dim=-2), o.split(4, dim=-2)):\n"
            "        b.add_(a).mul_(2)\n    return o\n",
            "def f(q: jax.Array):\n    o = jnp.zeros_like(q)\n    o_parts = []\n"
            "    for a, b in zip(split(q, 4, dim=-2), split(o, 4, dim=-2)):\n        b = (b + a) * 2\n"
            "        o_parts.append(b)\n    o = put_parts(o, o_parts, axis=-2)\n    return o\n",
        ),
        (
            "import torch\n\ndef f(n: int):\n    x = torch.zeros(3, n)\n    for i, row in enumerate(x):\n        row.add_(i)\n    return x\n",
            "def f(n: int):\n    x = jnp.zeros((3, n))\n    x_parts = []\n    for i, row in enumerate(x):\n        row = row + i\n"
            "        x_parts.append(row)\n    x = put_parts(x, x_parts)\n    return x\n",
        ),
    )

    def leave_For(self, original: cst.For, updated: cst.For) -> cst.FlattenSentinel[cst.BaseStatement] | None:
        parts = self.context.parted.get(self.context.span(original).line)
        if not parts:
            return None
        begin = [_line(f"{parts_name(part)} = []") for part in parts.values()]
        append = [_line(f"{parts_name(part)}.append({name})") for name, part in parts.items()]
        end = [self._end(part) for part in parts.values()]
        match updated.body:
            case cst.IndentedBlock(body=lines):
                body = updated.body.with_changes(body=[*lines, *append])
            case cst.SimpleStatementSuite(body=statements):
                body = cst.IndentedBlock([cst.SimpleStatementLine(statements), *append])
            case _:
                return None
        begin[0] = begin[0].with_changes(leading_lines=updated.leading_lines)
        return cst.FlattenSentinel([*begin, updated.with_changes(body=body, leading_lines=[]), *end])

    def _end(self, part: Part) -> cst.SimpleStatementLine:
        axis = f", axis={part.axis}" if part.axis else ""
        value = self.context.build(f"vendored.put_parts({part.base}, {parts_name(part)}{axis})")
        return cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(part.base))], value)])


def _line(text: str) -> cst.SimpleStatementLine:
    statement = cst.parse_statement(text)
    assert isinstance(statement, cst.SimpleStatementLine)
    return statement
