"""Convolutions (https://docs.pytorch.org/docs/stable/nn.html#convolution-layers)."""

from __future__ import annotations

import math
from collections.abc import Callable

from migrate_agent.tools.rewrite.tables.ops.calls import is_kind, is_name
from migrate_agent.tools.rewrite.tables.registry import UNKNOWN, Call, Layer

KERNEL = {"weight": "{self}.kernel", "bias": "{self}.bias"}
CONV = (
    "in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, "
    "padding_mode='zeros', device=None, dtype=None"
)

CONVTRANSPOSE = (
    "in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, "
    "dilation=1, padding_mode='zeros', device=None, dtype=None"
)

NOT_PLAIN = tuple("stride padding dilation padding_mode output_padding transposed reset_parameters _conv_forward".split())


def plain_convolution(spatial: int) -> Callable[[Call], str]:
    """Flax's convolution with the axes moved around it, for `spatial` axes; "" where the size of its kernel is not plain to read."""

    def to(call: Call) -> str:
        sizes = _sizes(call, spatial)
        padding = _padding(call)
        if not sizes or padding is None or call.given("dtype") or call.literal("padding_mode") != "zeros":
            return ""
        bias = call.literal("bias")
        options = [
            "" if call.literal("stride") == 1 else "strides={stride}",
            padding,
            "" if call.literal("dilation") == 1 else "kernel_dilation={dilation}",
            "" if call.literal("groups") == 1 else "feature_group_count={groups}",
            "" if bias is True else "use_bias={bias}",
            "kernel_init=vendored.fan_in_kernel",
            "" if bias is False else f"bias_init=vendored.fan_in_bias({_fan_in(call, spatial)})",
        ]
        written = "".join(f"{option}, " for option in options if option)
        return f"vendored.ChannelsFirstConv({{in_channels}}, {{out_channels}}, {sizes}, {written}rngs={{rngs}})"

    return to


def _sizes(call: Call, spatial: int) -> str:
    """The tuple of the kernel's sizes, or ""."""
    value = call.literal("kernel_size")
    if isinstance(value, (tuple, list)):
        return "{kernel_size}" if len(value) == spatial else ""
    if type(value) is int or (is_name(call, "kernel_size") and is_kind(call, "kernel_size", "int")):
        return f"({', '.join(['{kernel_size}'] * spatial)}{',' if spatial == 1 else ''})"
    return "{kernel_size}" if is_name(call, "kernel_size") and is_kind(call, "kernel_size", "tuple") else ""


def _padding(call: Call) -> str | None:
    value = call.literal("padding")
    if isinstance(value, str):
        return {"same": "padding='SAME'", "valid": "padding='VALID'"}.get(value)
    if value == 0 and call.literal("kernel_size") in (1, (1,), (1, 1), (1, 1, 1)):
        return ""  # what Flax pads by default is nothing here
    known = value is not UNKNOWN or is_kind(call, "padding", "int", "tuple")
    return "padding={padding=0}" if known else None


def _fan_in(call: Call, spatial: int) -> str:
    """The number of inputs of each output."""
    value = call.literal("kernel_size")
    if isinstance(value, (tuple, list)):
        factor = f" * {math.prod(value)}"
    elif type(value) is int:
        factor = "" if value == 1 else f" * {value**spatial}"
    else:
        factor = (
            " * {kernel_size}" + (f" ** {spatial}" if spatial > 1 else "")
            if is_kind(call, "kernel_size", "int")
            else " * math.prod({kernel_size})"
        )
    inputs, groups = call.literal("in_channels"), call.literal("groups")
    if type(inputs) is int and type(groups) is int and factor.removeprefix(" * ").isdigit():
        return str(inputs * int(factor.removeprefix(" * ")) // groups)
    return "{in_channels}" + factor + ("" if call.literal("groups") == 1 else " // {groups}")


ROWS = (
    *(
        Layer(
            f"torch.nn.Conv{n}d",
            CONV,
            f"Conv{n}d",
            params=KERNEL,
            samples=("4, 6, 3",),
            plain=plain_convolution(n),
            plain_class="nnx.Conv",
            plain_reads={
                "weight": f"{{self}}.kernel[...].transpose({n + 1}, {n}, {', '.join(map(str, range(n)))})",
                "in_channels": "{self}.in_features",
                "out_channels": "{self}.out_features",
                "groups": "{self}.feature_group_count",
            },
            not_plain=NOT_PLAIN,
        )
        for n in (1, 2, 3)
    ),
    *(Layer(f"torch.nn.ConvTranspose{n}d", CONVTRANSPOSE, f"ConvTranspose{n}d", params=KERNEL, samples=("4, 6, 3",)) for n in (1, 2, 3)),
)
