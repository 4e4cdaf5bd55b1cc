"""Layers that move elements between axes: unfold and fold, pixel and channel shuffles."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from migrate_agent.tools.vendored.numeric import to_tuple
from migrate_agent.tools.vendored.windows import gather_windows, window_index


def unfold(
    input: jax.Array,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> jax.Array:
    """(N, C, H, W) or (C, H, W) → (N, C * kernel, windows): the windows as columns.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.unfold.html
    """
    if input.ndim == 3:
        return unfold(input[None], kernel_size, dilation, padding, stride)[0]
    kernel, dilations, pads, steps = (to_tuple(value, 2) for value in (kernel_size, dilation, padding, stride))
    axes = zip(input.shape[2:], kernel, steps, pads, dilations, strict=True)
    windows, _ = gather_windows(input, [window_index(*axis) for axis in axes], 0)
    n, c, rows, columns = windows.shape[:4]
    return jnp.moveaxis(windows, (4, 5), (2, 3)).reshape(n, c * kernel[0] * kernel[1], rows * columns)


def fold(
    input: jax.Array,
    output_size: int | Sequence[int],
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> jax.Array:
    """(N, C * kernel, windows) or (C * kernel, windows) → (N, C, H, W): the sum of overlapping windows.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.fold.html
    """
    if input.ndim == 2:
        return fold(input[None], output_size, kernel_size, dilation, padding, stride)[0]
    sizes, kernel = to_tuple(output_size, 2), to_tuple(kernel_size, 2)
    dilations, pads, steps = (to_tuple(value, 2) for value in (dilation, padding, stride))
    rows, columns = (window_index(*axis) for axis in zip(sizes, kernel, steps, pads, dilations, strict=True))
    n, c = input.shape[0], input.shape[1] // (kernel[0] * kernel[1])
    blocks = input.reshape(n, c, *kernel, len(rows), len(columns))
    height, width = rows.T[:, None, :, None], columns.T[None, :, None, :]
    inside = (height >= 0) & (width >= 0)
    place = np.where(inside, height * sizes[1] + width, sizes[0] * sizes[1])
    flat = jnp.zeros((n, c, sizes[0] * sizes[1]), input.dtype).at[:, :, place].add(blocks, mode="drop")
    return flat.reshape(n, c, *sizes)


def pixel_shuffle(input: jax.Array, upscale_factor: int) -> jax.Array:
    """(…, C r², H, W) → (…, C, H r, W r).

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.pixel_shuffle.html
    """
    *batch, channels, height, width = input.shape
    r, n = upscale_factor, len(batch)
    x = input.reshape(*batch, channels // (r * r), r, r, height, width)
    x = x.transpose(*range(n + 1), n + 3, n + 1, n + 4, n + 2)
    return x.reshape(*batch, channels // (r * r), height * r, width * r)


def pixel_unshuffle(input: jax.Array, downscale_factor: int) -> jax.Array:
    """(…, C, H r, W r) → (…, C r², H, W).

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.pixel_unshuffle.html
    """
    *batch, channels, height, width = input.shape
    r, n = downscale_factor, len(batch)
    x = input.reshape(*batch, channels, height // r, r, width // r, r)
    x = x.transpose(*range(n + 1), n + 2, n + 4, n + 1, n + 3)
    return x.reshape(*batch, channels * r * r, height // r, width // r)


def channel_shuffle(input: jax.Array, groups: int) -> jax.Array:
    """(N, C, …): channels g * C/groups + i move to i * groups + g.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.channel_shuffle.html
    """
    n, channels, *rest = input.shape
    return input.reshape(n, groups, channels // groups, *rest).swapaxes(1, 2).reshape(input.shape)


class Unfold(nnx.Module):
    """Windows as columns. https://docs.pytorch.org/docs/stable/generated/torch.nn.Unfold.html"""

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
        *,
        rngs: nnx.Rngs | None = None,
    ) -> None:
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def __call__(self, input: jax.Array) -> jax.Array:
        return unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(nnx.Module):
    """Sums of overlapping windows. https://docs.pytorch.org/docs/stable/generated/torch.nn.Fold.html"""

    def __init__(
        self,
        output_size: int | Sequence[int],
        kernel_size: int | Sequence[int],
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
        *,
        rngs: nnx.Rngs | None = None,
    ) -> None:
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def __call__(self, input: jax.Array) -> jax.Array:
        return fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


class PixelShuffle(nnx.Module):
    """(…, C r², H, W) → (…, C, H r, W r). https://docs.pytorch.org/docs/stable/generated/torch.nn.PixelShuffle.html"""

    def __init__(self, upscale_factor: int, *, rngs: nnx.Rngs | None = None) -> None:
        self.upscale_factor = upscale_factor

    def __call__(self, input: jax.Array) -> jax.Array:
        return pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(nnx.Module):
    """(…, C, H r, W r) → (…, C r², H, W). https://docs.pytorch.org/docs/stable/generated/torch.nn.PixelUnshuffle.html"""

    def __init__(self, downscale_factor: int, *, rngs: nnx.Rngs | None = None) -> None:
        self.downscale_factor = downscale_factor

    def __call__(self, input: jax.Array) -> jax.Array:
        return pixel_unshuffle(input, self.downscale_factor)


class ChannelShuffle(nnx.Module):
    """Interleaves groups of channels. https://docs.pytorch.org/docs/stable/generated/torch.nn.ChannelShuffle.html"""

    def __init__(self, groups: int, *, rngs: nnx.Rngs | None = None) -> None:
        self.groups = groups

    def __call__(self, input: jax.Array) -> jax.Array:
        return channel_shuffle(input, self.groups)
