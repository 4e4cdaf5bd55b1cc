"""Containers (https://docs.pytorch.org/docs/stable/nn.html#containers)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Call, Layer


def plain_sequential(call: Call) -> str:
    """`nnx.Sequential`, whose layers have no names of their own."""
    single = call.each("args")[0] if call.count("args") == 1 else None
    is_layer = single is not None and all(kind.startswith(("module:", "function:")) for kind in single.kinds)
    return "nnx.Sequential({*args})" if call.count("args") != 1 or is_layer else ""


ROWS = (
    Layer(
        "torch.nn.Sequential",
        "*args",
        "Sequential",
        samples=("torch.nn.Linear(3, 4), torch.nn.ReLU()",),
        plain=plain_sequential,
        plain_class="nnx.Sequential",
        not_plain=tuple("append extend insert pop add_module register_module _modules".split()),
    ),
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
    Layer(
        "torch.nn.DataParallel",
        "module, device_ids=None, output_device=None, dim=0",
        "DataParallel",
        samples=("torch.nn.Linear(3, 4)",),
    ),
)
