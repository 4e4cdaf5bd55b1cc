"""Resizing (https://docs.pytorch.org/docs/stable/nn.html#vision-layers)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Layer

ROWS = (
    Layer(
        "torch.nn.Upsample",
        "size=None, scale_factor=None, mode='nearest', align_corners=None, recompute_scale_factor=None",
        "Upsample",
        samples=("scale_factor=2",),
    ),
    Layer("torch.nn.UpsamplingNearest2d", "size=None, scale_factor=None", "UpsamplingNearest2d", samples=("scale_factor=2",)),
    Layer("torch.nn.UpsamplingBilinear2d", "size=None, scale_factor=None", "UpsamplingBilinear2d", samples=("scale_factor=2",)),
)
