"""Helpers of `torch.nn.init` that compute numbers (https://docs.pytorch.org/docs/stable/nn.init.html)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Op

ROWS = (
    Op(
        "torch.nn.init._calculate_fan_in_and_fan_out",
        "tensor",
        "vendored.init_fans({tensor})",
        returns="tuple",
        samples=("torch.nn.init._calculate_fan_in_and_fan_out(torch.ones(3, 4, 5))",),
    ),
    Op(
        "torch.nn.init.calculate_gain",
        "nonlinearity, param=None",
        "vendored.init_gain({nonlinearity}, param={param})",
        returns="float",
        samples=("torch.nn.init.calculate_gain('relu')", "torch.nn.init.calculate_gain('leaky_relu', 0.2)"),
    ),
)
