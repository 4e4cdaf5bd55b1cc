"""`einops.layers.torch` (https://einops.rocks/api/rearrange/): the same patterns on JAX arrays."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Layer

ROWS = (
    Layer("einops.layers.torch.Rearrange", "pattern, **axes_lengths", "Rearrange", samples=("'b c h -> b (c h)'",)),
    Layer("einops.layers.torch.Reduce", "pattern, reduction, **axes_lengths", "Reduce", samples=("'b c h -> b c', 'mean'",)),
)
