"""Pooling (https://docs.pytorch.org/docs/stable/nn.html#pooling-layers)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Layer

MAXPOOL = "kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False"

LPPOOL = "norm_type, kernel_size, stride=None, ceil_mode=False"

MAXUNPOOL = "kernel_size, stride=None, padding=0"

ADAPTIVEAVGPOOL = "output_size"

ADAPTIVEMAXPOOL = "output_size, return_indices=False"

AVGPOOL = "kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None"

ROWS = (
    *(Layer(f"torch.nn.MaxPool{n}d", MAXPOOL, f"MaxPool{n}d", samples=("2",)) for n in (1, 2, 3)),
    *(Layer(f"torch.nn.LPPool{n}d", LPPOOL, f"LPPool{n}d", samples=("2, 2",)) for n in (1, 2, 3)),
    *(Layer(f"torch.nn.MaxUnpool{n}d", MAXUNPOOL, f"MaxUnpool{n}d", samples=("2",)) for n in (1, 2, 3)),
    *(Layer(f"torch.nn.AdaptiveAvgPool{n}d", ADAPTIVEAVGPOOL, f"AdaptiveAvgPool{n}d", samples=("2",)) for n in (1, 2, 3)),
    *(Layer(f"torch.nn.AdaptiveMaxPool{n}d", ADAPTIVEMAXPOOL, f"AdaptiveMaxPool{n}d", samples=("2",)) for n in (1, 2, 3)),
    *(Layer(f"torch.nn.AvgPool{n}d", AVGPOOL, f"AvgPool{n}d", samples=("2",)) for n in (2, 3)),
    Layer(
        "torch.nn.AvgPool1d", "kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True", "AvgPool1d", samples=("2",)
    ),
    Layer(
        "torch.nn.FractionalMaxPool2d",
        "kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None",
        "FractionalMaxPool2d",
        samples=("2, output_size=3",),
    ),
    Layer(
        "torch.nn.FractionalMaxPool3d",
        "kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None",
        "FractionalMaxPool3d",
        samples=("2, output_size=3",),
    ),
)
