"""Pooling (https://docs.pytorch.org/docs/stable/nn.html#pooling-layers)."""

from __future__ import annotations

from collections.abc import Callable

from migrate_agent.tools.rewrite.tables.registry import Call, Layer

MAXPOOL = "kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False"

LPPOOL = "norm_type, kernel_size, stride=None, ceil_mode=False"

MAXUNPOOL = "kernel_size, stride=None, padding=0"

ADAPTIVEAVGPOOL = "output_size"

ADAPTIVEMAXPOOL = "output_size, return_indices=False"

AVGPOOL = "kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None"

WINDOW = ("kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode", "count_include_pad", "divisor_override")
USUAL = {"dilation": 1, "return_indices": False, "ceil_mode": False, "count_include_pad": True, "divisor_override": None}
"""Options with which Flax's pooling is torch's."""


def plain_pool(spatial: int, kind: str) -> Callable[[Call], str]:
    """Flax's pooling with the axes moved around it, where its window is written out."""

    def to(call: Call) -> str:
        size, stride, padding = (call.literal(name) for name in ("kernel_size", "stride", "padding"))
        window = _whole(size, spatial)
        strides = window if stride is None else _whole(stride, spatial)
        usual = all(call.literal(name) == value for name, value in USUAL.items() if call.given(name))
        if not window or not strides or type(padding) is not int or not usual:
            return ""
        edges = f", padding={padding}" if padding else ""
        return f"partial(vendored.channels_first_pool, nnx.{kind}_pool, window={window}, strides={strides}{edges})"

    return to


def _whole(size: object, spatial: int) -> str:
    """A size for each of the axes, or ""."""
    sizes = (size,) * spatial if type(size) is int else tuple(size) if isinstance(size, (tuple, list)) else ()
    return repr(sizes) if len(sizes) == spatial and all(type(one) is int for one in sizes) else ""


def plain_mean(spatial: int) -> Callable[[Call], str]:
    """The mean over all `spatial` axes, where that is what is left of them."""
    axes = ", ".join(str(axis) for axis in range(-spatial, 0))

    def to(call: Call) -> str:
        size = call.literal("output_size")
        return (
            f"partial(jnp.mean, axis=({axes}{',' if spatial == 1 else ''}), keepdims=True)"
            if size in (1, (1,) * spatial, [1] * spatial)
            else ""
        )

    return to


ROWS = (
    *(
        Layer(f"torch.nn.MaxPool{n}d", MAXPOOL, f"MaxPool{n}d", samples=("2",), plain=plain_pool(n, "max"), not_plain=WINDOW)
        for n in (1, 2, 3)
    ),
    *(Layer(f"torch.nn.LPPool{n}d", LPPOOL, f"LPPool{n}d", samples=("2, 2",)) for n in (1, 2, 3)),
    *(Layer(f"torch.nn.MaxUnpool{n}d", MAXUNPOOL, f"MaxUnpool{n}d", samples=("2",)) for n in (1, 2, 3)),
    *(
        Layer(
            f"torch.nn.AdaptiveAvgPool{n}d",
            ADAPTIVEAVGPOOL,
            f"AdaptiveAvgPool{n}d",
            samples=("2",),
            plain=plain_mean(n),
            not_plain=("output_size",),
        )
        for n in (1, 2, 3)
    ),
    *(Layer(f"torch.nn.AdaptiveMaxPool{n}d", ADAPTIVEMAXPOOL, f"AdaptiveMaxPool{n}d", samples=("2",)) for n in (1, 2, 3)),
    *(
        Layer(f"torch.nn.AvgPool{n}d", AVGPOOL, f"AvgPool{n}d", samples=("2",), plain=plain_pool(n, "avg"), not_plain=WINDOW)
        for n in (2, 3)
    ),
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
