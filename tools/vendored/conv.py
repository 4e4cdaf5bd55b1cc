"""Convolutions with PyTorch's semantics, on (N, C, …) axes."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax

from migrate_agent.tools.vendored.numeric import to_tuple


def conv_axes(spatial: int) -> lax.ConvDimensionNumbers:
    """Channel-first inputs and outputs, and weights (out, in, …), for `spatial` spatial axes."""
    axes = tuple(range(spatial + 2))
    return lax.ConvDimensionNumbers(axes, axes, axes)


def same_padding(kernel_size: Sequence[int], dilation: Sequence[int]) -> list[tuple[int, int]]:
    """The (low, high) padding of `padding="same"`: the odd element goes to the high side.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.Conv2d.html
    """
    totals = [d * (k - 1) for k, d in zip(kernel_size, dilation, strict=True)]
    return [(total // 2, total - total // 2) for total in totals]


def conv_padding(padding: str | int | Sequence[int], kernel_size: Sequence[int], dilation: Sequence[int]) -> list[tuple[int, int]]:
    """`padding` as (low, high) pairs; it may be "same", "valid", an integer, or one integer for each spatial axis.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv2d.html
    """
    if padding == "same":
        return same_padding(kernel_size, dilation)
    amounts = to_tuple(0 if isinstance(padding, str) else padding, len(kernel_size))
    return [(amount, amount) for amount in amounts]


def convolution(
    input: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None = None,
    stride: int | Sequence[int] = 1,
    padding: str | int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> jax.Array:
    """Cross-correlation over as many spatial axes as `weight` (out, in/groups, …) has; `input` (N, in, …) or (in, …).

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv2d.html
    """
    spatial = weight.ndim - 2
    if input.ndim == spatial + 1:
        return convolution(input[None], weight, bias, stride, padding, dilation, groups)[0]
    dilations = to_tuple(dilation, spatial)
    output = lax.conv_general_dilated(
        input,
        weight,
        window_strides=to_tuple(stride, spatial),
        padding=conv_padding(padding, weight.shape[2:], dilations),
        rhs_dilation=dilations,
        dimension_numbers=conv_axes(spatial),
        feature_group_count=groups,
    )
    return output if bias is None else output + bias.reshape(-1, *[1] * spatial)


def conv_transpose(
    input: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> jax.Array:
    """The gradient of `convolution` with respect to its input; `weight` is (in, out/groups, …), `input` (N, in, …) or (in, …).

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv_transpose2d.html
    """
    spatial = weight.ndim - 2
    if input.ndim == spatial + 1:
        return conv_transpose(input[None], weight, bias, stride, padding, output_padding, groups, dilation)[0]
    dilations = to_tuple(dilation, spatial)
    extents = [d * (k - 1) for k, d in zip(weight.shape[2:], dilations, strict=True)]
    low = [extent - p for extent, p in zip(extents, to_tuple(padding, spatial), strict=True)]
    high = [edge + extra for edge, extra in zip(low, to_tuple(output_padding, spatial), strict=True)]
    output = lax.conv_general_dilated(
        input,
        transposed_kernel(weight, groups),
        window_strides=(1,) * spatial,
        padding=list(zip(low, high, strict=True)),
        lhs_dilation=to_tuple(stride, spatial),
        rhs_dilation=dilations,
        dimension_numbers=conv_axes(spatial),
        feature_group_count=groups,
    )
    return output if bias is None else output + bias.reshape(-1, *[1] * spatial)


def transposed_kernel(weight: jax.Array, groups: int) -> jax.Array:
    """(in, out/groups, …) → (out, in/groups, …) with the spatial axes reversed."""
    grouped = weight.reshape(groups, weight.shape[0] // groups, *weight.shape[1:]).swapaxes(1, 2)
    return jnp.flip(grouped.reshape(-1, *grouped.shape[2:]), tuple(range(2, weight.ndim)))


def conv1d(
    input: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None = None,
    stride: int | Sequence[int] = 1,
    padding: str | int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> jax.Array:
    """`convolution` over (N, C, L). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv1d.html"""
    return convolution(input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None = None,
    stride: int | Sequence[int] = 1,
    padding: str | int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> jax.Array:
    """`convolution` over (N, C, H, W). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv2d.html"""
    return convolution(input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None = None,
    stride: int | Sequence[int] = 1,
    padding: str | int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> jax.Array:
    """`convolution` over (N, C, D, H, W). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv3d.html"""
    return convolution(input, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    input: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> jax.Array:
    """`conv_transpose` over (N, C, L). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv_transpose1d.html"""
    return conv_transpose(input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(
    input: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> jax.Array:
    """`conv_transpose` over (N, C, H, W). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv_transpose2d.html"""
    return conv_transpose(input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(
    input: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> jax.Array:
    """`conv_transpose` over (N, C, D, H, W). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv_transpose3d.html"""
    return conv_transpose(input, weight, bias, stride, padding, output_padding, groups, dilation)
