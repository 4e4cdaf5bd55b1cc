"""Containers (https://docs.pytorch.org/docs/stable/nn.html#containers)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Layer

ROWS = (
    Layer("torch.nn.Sequential", "*args", "Sequential", samples=("torch.nn.Linear(3, 4), torch.nn.ReLU()",)),
    # A plain list would be a static attribute to NNX, and its parameters would be lost.
    Layer("torch.nn.ModuleList", "modules=None", "ModuleList", to="nnx.List({modules})", samples=("[torch.nn.Linear(3, 4)]",)),
    Layer(
        "torch.nn.ModuleDict",
        "modules=None",
        "ModuleDict",
        samples=("{'a': torch.nn.Linear(3, 4)}",),
        # `nnx.Dict` is sorted wherever it is split and merged.
        plain=lambda call: "nnx.Dict({modules})",
        not_plain=tuple("items keys values pop update clear children named_children _modules".split()),
    ),
    Layer("torch.nn.ParameterList", "values=None", "ParameterList", samples=("[torch.nn.Parameter(torch.ones(3))]",)),
    Layer("torch.nn.ParameterDict", "parameters=None", "ParameterDict", samples=("{'a': torch.nn.Parameter(torch.ones(3))}",)),
)
