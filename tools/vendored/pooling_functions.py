"""Pooling functions under PyTorch's names."""

from collections.abc import Sequence

import jax

from migrate_agent.tools.vendored.adaptive_pooling import adaptive_avg_pool, adaptive_max_pool
from migrate_agent.tools.vendored.pooling import avg_pool, lp_pool, max_pool, max_unpool, unpool_size


def max_pool1d(
    input: jax.Array,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """`max_pool` over (N, C, L). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.max_pool1d.html"""
    return max_pool(input, 1, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def avg_pool1d(
    input: jax.Array,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> jax.Array:
    """`avg_pool` over (N, C, L). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.avg_pool1d.html"""
    return avg_pool(input, 1, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def lp_pool1d(
    input: jax.Array,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> jax.Array:
    """`lp_pool` over (N, C, L). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.lp_pool1d.html"""
    return lp_pool(input, 1, norm_type, kernel_size, stride, ceil_mode)


def max_unpool1d(
    input: jax.Array,
    indices: jax.Array,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: Sequence[int] | None = None,
) -> jax.Array:
    """`max_unpool` over (N, C, L). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.max_unpool1d.html"""
    return max_unpool(input, indices, 1, unpool_size(input, kernel_size, stride, padding, output_size, 1))


def adaptive_avg_pool1d(input: jax.Array, output_size: int | Sequence[int]) -> jax.Array:
    """`adaptive_avg_pool` over (N, C, L). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.adaptive_avg_pool1d.html"""
    return adaptive_avg_pool(input, 1, output_size)


def adaptive_max_pool1d(
    input: jax.Array, output_size: int | Sequence[int], return_indices: bool = False
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """`adaptive_max_pool` over (N, C, L). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.adaptive_max_pool1d.html"""
    return adaptive_max_pool(input, 1, output_size, return_indices)


def max_pool2d(
    input: jax.Array,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """`max_pool` over (N, C, H, W). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.max_pool2d.html"""
    return max_pool(input, 2, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def avg_pool2d(
    input: jax.Array,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> jax.Array:
    """`avg_pool` over (N, C, H, W). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.avg_pool2d.html"""
    return avg_pool(input, 2, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def lp_pool2d(
    input: jax.Array,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> jax.Array:
    """`lp_pool` over (N, C, H, W). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.lp_pool2d.html"""
    return lp_pool(input, 2, norm_type, kernel_size, stride, ceil_mode)


def max_unpool2d(
    input: jax.Array,
    indices: jax.Array,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: Sequence[int] | None = None,
) -> jax.Array:
    """`max_unpool` over (N, C, H, W). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.max_unpool2d.html"""
    return max_unpool(input, indices, 2, unpool_size(input, kernel_size, stride, padding, output_size, 2))


def adaptive_avg_pool2d(input: jax.Array, output_size: int | Sequence[int | None]) -> jax.Array:
    """`adaptive_avg_pool` over (N, C, H, W). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.adaptive_avg_pool2d.html"""
    return adaptive_avg_pool(input, 2, output_size)


def adaptive_max_pool2d(
    input: jax.Array, output_size: int | Sequence[int | None], return_indices: bool = False
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """`adaptive_max_pool` over (N, C, H, W). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.adaptive_max_pool2d.html"""
    return adaptive_max_pool(input, 2, output_size, return_indices)


def max_pool3d(
    input: jax.Array,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """`max_pool` over (N, C, D, H, W). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.max_pool3d.html"""
    return max_pool(input, 3, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def avg_pool3d(
    input: jax.Array,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> jax.Array:
    """`avg_pool` over (N, C, D, H, W). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.avg_pool3d.html"""
    return avg_pool(input, 3, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def lp_pool3d(
    input: jax.Array,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> jax.Array:
    """`lp_pool` over (N, C, D, H, W). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.lp_pool3d.html"""
    return lp_pool(input, 3, norm_type, kernel_size, stride, ceil_mode)


def max_unpool3d(
    input: jax.Array,
    indices: jax.Array,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: Sequence[int] | None = None,
) -> jax.Array:
    """`max_unpool` over (N, C, D, H, W). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.max_unpool3d.html"""
    return max_unpool(input, indices, 3, unpool_size(input, kernel_size, stride, padding, output_size, 3))


def adaptive_avg_pool3d(input: jax.Array, output_size: int | Sequence[int | None]) -> jax.Array:
    """`adaptive_avg_pool` over (N, C, D, H, W). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.adaptive_avg_pool3d.html"""
    return adaptive_avg_pool(input, 3, output_size)


def adaptive_max_pool3d(
    input: jax.Array, output_size: int | Sequence[int | None], return_indices: bool = False
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """`adaptive_max_pool` over (N, C, D, H, W). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.adaptive_max_pool3d.html"""
    return adaptive_max_pool(input, 3, output_size, return_indices)
