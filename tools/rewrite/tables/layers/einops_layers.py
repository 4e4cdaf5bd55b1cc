"""`einops.layers.torch` (https://einops.rocks/api/rearrange/): the same patterns on JAX arrays."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Layer

ROWS = (
    Layer(
        "einops.layers.torch.Rearrange",
        "pattern, **axes_lengths",
        "Rearrange",
        samples=("'b c h -> b (c h)'",),
        plain=lambda call: "partial(einops.rearrange, pattern={pattern}, {*axes_lengths})",
        not_plain=("pattern", "axes_lengths"),
    ),
    Layer(
        "einops.layers.torch.Reduce",
        "pattern, reduction, **axes_lengths",
        "Reduce",
        samples=("'b c h -> b c', 'mean'",),
        plain=lambda call: "partial(einops.reduce, pattern={pattern}, reduction={reduction}, {*axes_lengths})",
        not_plain=("pattern", "reduction", "axes_lengths"),
    ),
)
