"""Layers that move elements between axes (https://docs.pytorch.org/docs/stable/nn.html#vision-layers)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Layer

ROWS = (
    Layer("torch.nn.Fold", "output_size, kernel_size, dilation=1, padding=0, stride=1", "Fold", samples=("(4, 5), 2",)),
    Layer("torch.nn.Unfold", "kernel_size, dilation=1, padding=0, stride=1", "Unfold", samples=("2",)),
    Layer("torch.nn.PixelShuffle", "upscale_factor", "PixelShuffle", samples=("2",)),
    Layer("torch.nn.PixelUnshuffle", "downscale_factor", "PixelUnshuffle", samples=("2",)),
    Layer("torch.nn.ChannelShuffle", "groups", "ChannelShuffle", samples=("2",)),
)
