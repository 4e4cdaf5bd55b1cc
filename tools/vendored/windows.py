"""Windows over axes as static index tables: pooling with indices, adaptive pooling, unfolding."""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np


def pool_size(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """The number of windows on an axis; with `ceil_mode` the last may reach over the edge, but must start inside or in the low padding.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.MaxPool2d.html
    """
    reach = size + 2 * padding - dilation * (kernel - 1) - 1
    windows = (reach + stride - 1 if ceil_mode else reach) // stride + 1
    return windows - 1 if ceil_mode and (windows - 1) * stride >= size + padding else windows


def window_index(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool = False) -> np.ndarray:
    """(windows, kernel): the element of the axis at each place of each window, -1 outside."""
    windows = pool_size(size, kernel, stride, padding, dilation, ceil_mode)
    index = np.arange(windows)[:, None] * stride - padding + np.arange(kernel) * dilation
    return np.where((index < 0) | (index >= size), -1, index)


def adaptive_index(size: int, windows: int) -> np.ndarray:
    """(windows, longest): the elements ⌊iL/O⌋ … ⌈(i+1)L/O⌉ of each adaptive window, -1 past its end.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.AdaptiveAvgPool2d.html
    """
    start = np.arange(windows) * size // windows
    end = -(-(np.arange(windows) + 1) * size // windows)
    index = start[:, None] + np.arange((end - start).max(initial=0))
    return np.where(index < end[:, None], index, -1)


def gather_windows(input: jax.Array, index: Sequence[np.ndarray], fill: float | int) -> tuple[jax.Array, np.ndarray]:
    """Windows of the last `len(index)` axes.

    (…, L1, L2) with tables (O1, K1), (O2, K2) → windows (…, O1, O2, K1, K2), `fill` outside, and the flat source index of
    each element (O1, O2, K1 * K2), -1 outside.
    """
    spatial, sizes = len(index), input.shape[input.ndim - len(index) :]
    flat, valid = np.zeros((1,) * (2 * spatial), int), np.ones((1,) * (2 * spatial), bool)
    for axis, table in enumerate(index):
        shape = [1] * (2 * spatial)
        shape[axis], shape[spatial + axis] = table.shape
        flat = flat * sizes[axis] + table.reshape(shape)
        valid = valid & (table >= 0).reshape(shape)
    rows = input.reshape(*input.shape[: input.ndim - spatial], math.prod(sizes))
    windows = jnp.where(valid, jnp.take(rows, np.where(valid, flat, 0), axis=-1), jnp.asarray(fill, input.dtype))
    return windows, np.where(valid, flat, -1).reshape(*flat.shape[:spatial], -1)
