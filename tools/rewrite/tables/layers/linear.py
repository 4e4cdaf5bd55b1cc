"""Linear layers and reshapes (https://docs.pytorch.org/docs/stable/nn.html#linear-layers)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Layer

KERNEL = {"weight": "{self}.kernel", "bias": "{self}.bias"}
OWN = {"weight": "{self}.weight", "bias": "{self}.bias"}

ROWS = (
    Layer("torch.nn.Linear", "in_features, out_features, bias=True, device=None, dtype=None", "Linear", params=KERNEL, samples=("3, 5",)),
    Layer(
        "torch.nn.Bilinear",
        "in1_features, in2_features, out_features, bias=True, device=None, dtype=None",
        "Bilinear",
        params=OWN,
        samples=("3, 4, 5",),
    ),
    Layer("torch.nn.Identity", "*args, **kwargs", "Identity", samples=("",)),
    Layer("torch.nn.Flatten", "start_dim=1, end_dim=-1", "Flatten", samples=("",)),
    Layer("torch.nn.Unflatten", "dim, unflattened_size", "Unflatten", samples=("1, (2, 3)",)),
)
