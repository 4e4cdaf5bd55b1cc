"""Padding (https://docs.pytorch.org/docs/stable/nn.html#padding-layers)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Layer

ROWS = (
    *(
        Layer(f"torch.nn.{kind}Pad{n}d", "padding", f"{kind}Pad{n}d", samples=("1",))
        for kind in ("Zero", "Reflection", "Replication", "Circular")
        for n in (1, 2, 3)
    ),
    *(Layer(f"torch.nn.ConstantPad{n}d", "padding, value", f"ConstantPad{n}d", samples=("1, 2.0",)) for n in (1, 2, 3)),
)
