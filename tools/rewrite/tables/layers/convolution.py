"""Convolutions (https://docs.pytorch.org/docs/stable/nn.html#convolution-layers)."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence

from migrate_agent.tools.rewrite.tables.ops.calls import is_kind, is_name
from migrate_agent.tools.rewrite.tables.registry import UNKNOWN, Call, Layer, is_repeatable

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
        sizes, padding = _sizes(call, spatial), _padding(call)
        if not sizes or padding is None or call.given("dtype") or call.literal("padding_mode") != "zeros":
            return ""
        options = [
            padding,
            "" if call.literal("dilation") == 1 else "kernel_dilation={dilation}",
            "" if call.literal("groups") == 1 else "feature_group_count={groups}",
        ]
        return _construction("ChannelsFirstConv", call, sizes, options, _fan_in(call, spatial))

    return to


def plain_transposed(spatial: int) -> Callable[[Call], str]:
    """Flax's transposed convolution with the axes moved around it; "" where it has groups or gaps, or its sizes are not plain to read."""

    def to(call: Call) -> str:
        sizes, padding = _sizes(call, spatial), _transposed_padding(call, spatial)
        if not sizes or not padding or call.given("dtype") or call.literal("padding_mode") != "zeros":
            return ""
        if call.literal("groups") != 1 or call.literal("dilation") not in (1, (1,) * spatial):
            return ""
        options = [f"padding={padding}", "transpose_kernel=True"]
        return _construction("ChannelsFirstConvTranspose", call, sizes, options, _product("{out_channels}", call, spatial))

    return to


def _construction(helper: str, call: Call, sizes: str, options: Sequence[str], fan_in: str) -> str:
    """The template of a layer with torch's initial values, of `fan_in` inputs for each output; options that are "" are left out."""
    bias = call.literal("bias")
    every = [
        "" if call.literal("stride") == 1 else "strides={stride}",
        *options,
        "" if bias is True else "use_bias={bias}",
        "kernel_init=vendored.fan_in_kernel",
        "" if bias is False else f"bias_init=vendored.fan_in_bias({fan_in})",
    ]
    written = "".join(f"{option}, " for option in every if option)
    return f"vendored.{helper}({{in_channels}}, {{out_channels}}, {sizes}, {written}rngs={{rngs}})"


def _transposed_padding(call: Call, spatial: int) -> str:
    """What is put around the input: of each axis k - 1 - p elements at both ends, and the output padding more at the high one; "" where it is not known."""
    sizes = [_each(call, name, spatial) for name in ("kernel_size", "padding", "output_padding")]
    if not all(sizes):
        return ""
    pairs = []
    for size, crop, extra in zip(*sizes, strict=True):
        low = _difference(size, crop)
        pairs.append(f"({low}, {low if extra == '0' else _sum(low, extra)})")
    if len(set(pairs)) == 1 and spatial > 1 and not pairs[0][1:-1].replace(", ", "").isdigit():
        return f"[{pairs[0]}] * {spatial}"
    return f"[{', '.join(pairs)}]"


def _each(call: Call, name: str, spatial: int) -> list[str]:
    """The text of a size for each axis; nothing where it is no integer, nor a tuple that is written out, or costs more than a few operations."""
    value = call.literal(name)
    if isinstance(value, (tuple, list)):
        return [str(one) for one in value] if len(value) == spatial else []
    if type(value) is int:
        return [str(value)] * spatial
    if written := _written(call, name):
        return [f"({one})" if not one.isidentifier() else one for one in written] if len(written) == spatial else []
    is_number = call.repeats(name) and is_kind(call, name, "int")
    return [f"{{{name}}}"] * spatial if is_number else []


def _difference(size: str, crop: str) -> str:
    if size.isdigit() and crop.isdigit():
        return str(int(size) - 1 - int(crop))
    return f"{size} - 1" if crop == "0" else f"{size} - 1 - {crop}"


def _sum(low: str, extra: str) -> str:
    signed = low.lstrip("-")
    return str(int(low) + int(extra)) if signed.isdigit() and extra.isdigit() else f"{low} + {extra}"


def _sizes(call: Call, spatial: int) -> str:
    """The tuple of the kernel's sizes, or ""."""
    value = call.literal("kernel_size")
    if isinstance(value, (tuple, list)):
        return "{kernel_size}" if len(value) == spatial else ""
    written = _written(call, "kernel_size")
    if written:
        return "{kernel_size}" if len(written) == spatial else ""
    if type(value) is int or (call.repeats("kernel_size") and is_kind(call, "kernel_size", "int")):
        return f"({', '.join(['{kernel_size}'] * spatial)}{',' if spatial == 1 else ''})"
    return "{kernel_size}" if is_name(call, "kernel_size") and is_kind(call, "kernel_size", "tuple") else ""


def _written(call: Call, name: str) -> list[str]:
    """The elements of a tuple that the caller wrote out, where each may stand twice; else nothing."""
    tuple_of = ast.parse(call.text(name) or "0", mode="eval").body
    elements = tuple_of.elts if isinstance(tuple_of, ast.Tuple) else []
    plain = all(is_repeatable(element) and "{" not in ast.unparse(element) and not isinstance(element, ast.Starred) for element in elements)
    return [ast.unparse(element) for element in elements] if plain else []


def _is_written_tuple(call: Call, name: str) -> bool:
    """Whether the caller wrote out a tuple, whatever its elements are."""
    value = ast.parse(call.text(name) or "0", mode="eval").body
    return isinstance(value, ast.Tuple) and not any(isinstance(element, ast.Starred) for element in value.elts)


def _padding(call: Call) -> str | None:
    value = call.literal("padding")
    if isinstance(value, str):
        return {"same": "padding='SAME'", "valid": "padding='VALID'"}.get(value)
    if value == 0 and call.literal("kernel_size") in (1, (1,), (1, 1), (1, 1, 1)):
        return ""  # what Flax pads by default is nothing here
    known = value is not UNKNOWN or is_kind(call, "padding", "int", "tuple") or _is_written_tuple(call, "padding")
    return "padding={padding=0}" if known else None


def _fan_in(call: Call, spatial: int) -> str:
    """The number of inputs of each output."""
    factor = _factor(call, spatial)
    inputs, groups = call.literal("in_channels"), call.literal("groups")
    if type(inputs) is int and type(groups) is int and factor.isdigit():
        return str(inputs * int(factor) // groups)
    if call.text("in_channels") == call.text("groups") and call.repeats("groups"):
        return factor  # a kernel for each channel
    product = _product("{in_channels}", call, spatial)
    return product if groups == 1 else f"{product} // {{groups}}"


def _product(channels: str, call: Call, spatial: int) -> str:
    """The elements of so many kernels."""
    count = call.literal(channels[1:-1])
    factor = _factor(call, spatial)
    if type(count) is int and factor.isdigit():
        return str(count * int(factor))
    return channels if factor == "1" else f"{channels} * {factor}"


def _factor(call: Call, spatial: int) -> str:
    """The number of elements of a kernel."""
    value, written = call.literal("kernel_size"), _written(call, "kernel_size")
    if isinstance(value, (tuple, list)):
        return str(math.prod(value))
    if type(value) is int:
        return str(value**spatial)
    if written:
        sizes = [size if size.isidentifier() else f"({size})" for size in written if size != "1"]
        return " * ".join(sizes) or "1"
    if not is_kind(call, "kernel_size", "int"):
        return "math.prod({kernel_size})"
    return "{kernel_size}" + (f" ** {spatial}" if spatial > 1 else "")


def _reads(spatial: int) -> dict[str, str]:
    return {
        "weight": f"{{self}}.kernel[...].transpose({spatial + 1}, {spatial}, {', '.join(map(str, range(spatial)))})",
        "in_channels": "{self}.in_features",
        "out_channels": "{self}.out_features",
        "groups": "{self}.feature_group_count",
    }


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
            plain_reads=_reads(n),
            not_plain=NOT_PLAIN,
        )
        for n in (1, 2, 3)
    ),
    *(
        Layer(
            f"torch.nn.ConvTranspose{n}d",
            CONVTRANSPOSE,
            f"ConvTranspose{n}d",
            params=KERNEL,
            samples=("4, 6, 3",),
            plain=plain_transposed(n),
            plain_class="nnx.ConvTranspose",
            plain_reads={name: text for name, text in _reads(n).items() if name != "groups"},
            not_plain=(*NOT_PLAIN, "groups"),
        )
        for n in (1, 2, 3)
    ),
)
