"""Pooling with PyTorch's semantics over the last axes of (N, C, …) or (C, …)."""

import math
from collections.abc import Sequence
from functools import partial, reduce

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from migrate_agent.tools.vendored.numeric import promote_half, to_tuple
from migrate_agent.tools.vendored.windows import gather_windows, pool_size, window_index


def lowest(dtype: np.dtype) -> float | int:
    """The neutral element of the maximum: -inf, or the smallest integer."""
    return -np.inf if jnp.issubdtype(dtype, jnp.floating) else int(jnp.iinfo(dtype).min)


def high_padding(sizes: Sequence[int], kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], ceil: bool) -> list[int]:
    """Padding on the high side with which a strided window gives exactly PyTorch's output size."""
    outputs = [pool_size(*args, 1, ceil) for args in zip(sizes, kernel, stride, padding, strict=True)]
    spans = [(out - 1) * s + k for out, s, k in zip(outputs, stride, kernel, strict=True)]
    return [span - size - low for span, size, low in zip(spans, sizes, padding, strict=True)]


def max_pool(
    input: jax.Array,
    spatial: int,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None,
    padding: int | Sequence[int],
    dilation: int | Sequence[int],
    ceil_mode: bool,
    return_indices: bool,
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """The maximum over windows of the last `spatial` axes, and on request its flat index among these axes.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.max_pool2d.html
    """
    kernel, pads = to_tuple(kernel_size, spatial), to_tuple(padding, spatial)
    steps = to_tuple(stride, spatial) if stride else kernel
    sizes = input.shape[-spatial:]
    if return_indices or (dilation != 1 and max(to_tuple(dilation, spatial)) > 1):
        axes = zip(sizes, kernel, steps, pads, to_tuple(dilation, spatial), strict=True)
        values, indices = max_of_windows(input, [window_index(*axis, ceil_mode) for axis in axes])
        return (values, indices) if return_indices else values
    high = [max(top, 0) for top in high_padding(sizes, kernel, steps, pads, ceil_mode)] if ceil_mode else pads
    leading = input.ndim - spatial
    low_high = [(0, 0)] * leading + list(zip(pads, high, strict=True))
    return lax.reduce_window(input, lowest(input.dtype), lax.max, (*[1] * leading, *kernel), (*[1] * leading, *steps), low_high)


def max_of_windows(input: jax.Array, index: Sequence[np.ndarray]) -> tuple[jax.Array, jax.Array]:
    """The maximum over each window and its flat index; `index` lists for each pooled axis (windows, elements), -1 outside."""
    spatial = len(index)
    windows, inside = gather_windows(input, index, lowest(input.dtype))
    flat = windows.reshape(*windows.shape[:-spatial], int(np.prod(windows.shape[-spatial:])))
    best = jnp.argmax(flat, axis=-1)
    values = jnp.take_along_axis(flat, best[..., None], axis=-1)[..., 0]
    return values, jnp.take_along_axis(jnp.broadcast_to(inside, flat.shape), best[..., None], axis=-1)[..., 0]


def avg_pool(
    input: jax.Array,
    spatial: int,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None,
    padding: int | Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> jax.Array:
    """The mean over windows of the last `spatial` axes.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.avg_pool2d.html
    """
    kernel, pads = to_tuple(kernel_size, spatial), to_tuple(padding, spatial)
    steps = to_tuple(stride, spatial) if stride else kernel
    sizes, leading = input.shape[-spatial:], input.ndim - spatial
    high = [max(top, 0) for top in high_padding(sizes, kernel, steps, pads, ceil_mode)] if ceil_mode else pads
    low_high = [(0, 0)] * leading + list(zip(pads, high, strict=True))
    x = promote_half(input)
    total = lax.reduce_window(x, np.zeros((), x.dtype), lax.add, (*[1] * leading, *kernel), (*[1] * leading, *steps), low_high)
    if divisor_override is not None:
        return (total / divisor_override).astype(input.dtype)
    if count_include_pad and not ceil_mode:  # no window reaches beyond the padding
        return (total / math.prod(kernel)).astype(input.dtype)
    axes = zip(sizes, kernel, steps, pads, total.shape[-spatial:], strict=True)
    counts = [window_count(*axis, count_include_pad) for axis in axes]
    divisor = reduce(np.multiply, np.ix_(*counts))
    return (total / jnp.asarray(divisor, x.dtype)).astype(input.dtype)


def window_count(size: int, kernel: int, stride: int, padding: int, windows: int, include_pad: bool) -> np.ndarray:
    """How many elements of one axis each window counts."""
    start = np.arange(windows) * stride - padding
    end = np.minimum(start + kernel, size + padding)
    return end - start if include_pad else np.minimum(end, size) - np.maximum(start, 0)


def lp_pool(
    input: jax.Array,
    spatial: int,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None,
    ceil_mode: bool,
) -> jax.Array:
    """(Σ xᵖ)^(1/p) over windows of the last `spatial` axes, from the average as in PyTorch.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.lp_pool2d.html
    """
    kernel = to_tuple(kernel_size, spatial)
    total = avg_pool(input**norm_type, spatial, kernel, stride, 0, ceil_mode, True, None) * int(np.prod(kernel))
    is_zero = total == 0
    return jnp.where(is_zero, 0, jnp.where(is_zero, 1, total) ** (1 / norm_type))


def max_unpool(input: jax.Array, indices: jax.Array, spatial: int, output_size: Sequence[int]) -> jax.Array:
    """Puts each value at its flat index into zeros of spatial shape `output_size`. Each value has the gradient at its index, also where another one lies
    there, as in PyTorch.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.max_unpool2d.html
    """
    leading, sizes = input.shape[:-spatial], tuple(int(size) for size in output_size[-spatial:])
    rows, count = int(np.prod(leading)), int(np.prod(input.shape[-spatial:]))
    flat = _put(input.reshape(rows, count), indices.reshape(rows, count), int(np.prod(sizes)))
    return flat.reshape(*leading, *sizes)


@partial(jax.custom_jvp, nondiff_argnums=(2,))
def _put(values: jax.Array, indices: jax.Array, size: int) -> jax.Array:
    """Puts `values` (rows, count) into zeros (rows, size)."""
    return jnp.zeros((values.shape[0], size), values.dtype).at[jnp.arange(values.shape[0])[:, None], indices].set(values)


@_put.defjvp
def _put_jvp(size: int, primals: tuple[jax.Array, ...], tangents: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
    (values, indices), tangent = primals, tangents[0]
    zeros = jnp.zeros((values.shape[0], size), tangent.dtype)
    return _put(values, indices, size), zeros.at[jnp.arange(values.shape[0])[:, None], indices].add(tangent)


def unpool_size(
    input: jax.Array,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None,
    padding: int | Sequence[int],
    output_size: Sequence[int] | None,
    spatial: int,
) -> tuple[int, ...]:
    """The spatial shape that max unpooling restores."""
    if output_size is not None:
        return tuple(output_size[-spatial:])
    kernel, pads = to_tuple(kernel_size, spatial), to_tuple(padding, spatial)
    steps = to_tuple(stride, spatial) if stride else kernel
    axes = zip(input.shape[-spatial:], kernel, steps, pads, strict=True)
    return tuple((size - 1) * s - 2 * p + k for size, k, s, p in axes)
