"""Convolutions (https://docs.pytorch.org/docs/stable/nn.html#convolution-layers)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Layer

KERNEL = {"weight": "{self}.kernel", "bias": "{self}.bias"}
CONV = (
    "in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, "
    "padding_mode='zeros', device=None, dtype=None"
)

CONVTRANSPOSE = (
    "in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, "
    "dilation=1, padding_mode='zeros', device=None, dtype=None"
)

ROWS = (
    *(Layer(f"torch.nn.Conv{n}d", CONV, f"Conv{n}d", params=KERNEL, samples=("4, 6, 3",)) for n in (1, 2, 3)),
    *(Layer(f"torch.nn.ConvTranspose{n}d", CONVTRANSPOSE, f"ConvTranspose{n}d", params=KERNEL, samples=("4, 6, 3",)) for n in (1, 2, 3)),
)
