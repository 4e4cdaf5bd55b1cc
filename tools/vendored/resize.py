"""Resizing of the last axes of (N, C, …), each output element a weighted sum of a few taps of each axis."""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from migrate_agent.tools.vendored.adaptive_pooling import adaptive_avg_pool
from migrate_agent.tools.vendored.numeric import promote_half

Taps = tuple[np.ndarray, np.ndarray]
"""For each output element of an axis: the input elements it is made of (out, k), and their weights (out, k)."""


def interpolate(
    input: jax.Array,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> jax.Array:
    """Resizes the axes after N and C to `size`, or by `scale_factor`.

    Modes: `nearest`, `nearest-exact`, `linear`, `bilinear`, `trilinear`, `bicubic`, `area`.
    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html
    """
    spatial = input.ndim - 2
    sizes, scales = resized(input.shape[2:], size, scale_factor, bool(recompute_scale_factor))
    if mode == "area":
        return adaptive_avg_pool(input, spatial, sizes)
    x = promote_half(input)
    real = np.dtype(np.float64 if x.dtype == jnp.float64 else np.float32)
    for axis, (out, scale) in enumerate(zip(sizes, scales, strict=True), start=2):
        x = resample(x, axis, axis_taps(x.shape[axis], out, scale, mode, bool(align_corners), antialias, real))
    return x.astype(input.dtype)


def resized(
    shape: Sequence[int], size: int | Sequence[int] | None, scale_factor: float | Sequence[float] | None, recompute: bool
) -> tuple[list[int], list[float | None]]:
    """The output size of each axis, and the scale that maps its coordinates (`None`: the ratio of the sizes)."""
    if size is not None:
        return ([size] * len(shape) if isinstance(size, int) else [int(s) for s in size]), [None] * len(shape)
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    factors = [float(scale_factor)] * len(shape) if isinstance(scale_factor, (int, float)) else [float(f) for f in scale_factor]
    sizes = [math.floor(length * factor) for length, factor in zip(shape, factors, strict=True)]
    return sizes, [None] * len(shape) if recompute else list(factors)


def resample(x: jax.Array, axis: int, taps: Taps) -> jax.Array:
    """The weighted sum of the taps along `axis`."""
    index, weight = taps
    shape = [1] * x.ndim
    shape[axis] = len(index)
    columns = [jnp.take(x, index[:, k], axis) * jnp.asarray(weight[:, k].reshape(shape), x.dtype) for k in range(index.shape[1])]
    return jnp.take(x, index[:, 0], axis) if index.shape[1] == 1 else sum(columns[1:], columns[0])


def axis_taps(size: int, out: int, scale: float | None, mode: str, align_corners: bool, antialias: bool, real: np.dtype) -> Taps:
    """The taps of one axis. Raises `ValueError` for an unknown mode."""
    ratio = real.type(size / out if scale is None else 1 / scale)
    if mode == "nearest":
        return nearest_taps(np.floor(np.arange(out, dtype=real) * ratio), size)
    if mode == "nearest-exact":
        return nearest_taps(np.floor((np.arange(out, dtype=real) + real.type(0.5)) * ratio), size)
    if mode not in ("linear", "bilinear", "trilinear", "bicubic"):
        raise ValueError(f"unknown interpolation mode {mode!r}")
    cubic = mode == "bicubic"
    if align_corners:
        ratio = real.type((size - 1) / (out - 1) if out > 1 else 0)
    if antialias:
        return antialias_taps(size, out, float(ratio), cubic, align_corners)
    half = real.type(0 if align_corners else 0.5)
    position = (np.arange(out, dtype=real) + half) * ratio - half
    return cubic_taps(position, size) if cubic else linear_taps(position, size)


def nearest_taps(position: np.ndarray, size: int) -> Taps:
    """The one element at each position."""
    index = position.astype(int).clip(0, size - 1)[:, None]
    return index, np.ones_like(index, float)


def linear_taps(position: np.ndarray, size: int) -> Taps:
    """The two neighbours of each position."""
    position = np.maximum(position, 0)
    low = np.minimum(position.astype(int), size - 1)
    share = np.clip(position - low, 0, 1)
    return np.stack([low, np.minimum(low + 1, size - 1)], 1), np.stack([1 - share, share], 1)


def cubic_taps(position: np.ndarray, size: int) -> Taps:
    """The four neighbours of each position, weighted by Keys' cubic with a = -0.75."""
    low = np.floor(position).astype(int)
    offsets = np.arange(-1, 3)
    weight = cubic_kernel(position[:, None] - (low[:, None] + offsets), -0.75)
    return (low[:, None] + offsets).clip(0, size - 1), weight


def cubic_kernel(x: np.ndarray, a: float) -> np.ndarray:
    """Keys' cubic convolution kernel."""
    x = abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def antialias_taps(size: int, out: int, ratio: float, cubic: bool, align_corners: bool) -> Taps:
    """The elements under a triangle or cubic (a = -0.5) filter as wide as the shrinking asks for, normalised."""
    stretch = max(ratio, 1.0)
    support = (2.0 if cubic else 1.0) * stretch
    centre = ratio * (np.arange(out) + 0.5)
    low = np.maximum((centre - support + 0.5).astype(int), 0)
    count = np.minimum((centre + support + 0.5).astype(int), size) - low
    places = np.arange(int(count.max(initial=1)))
    index = low[:, None] + places
    distance = (index - centre[:, None] + 0.5) / stretch
    weight = cubic_kernel(distance, -0.5) if cubic else np.maximum(1 - abs(distance), 0)
    weight = np.where(places < count[:, None], weight, 0)
    return index.clip(0, size - 1), weight / weight.sum(1, keepdims=True)


class Upsample(nnx.Module):
    """Resizes the axes after N and C. https://docs.pytorch.org/docs/stable/generated/torch.nn.Upsample.html"""

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
        *,
        rngs: nnx.Rngs | None = None,
    ) -> None:
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def __call__(self, input: jax.Array) -> jax.Array:
        return interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor)


class UpsamplingNearest2d(Upsample):
    """Nearest neighbour. https://docs.pytorch.org/docs/stable/generated/torch.nn.UpsamplingNearest2d.html"""

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        *,
        rngs: nnx.Rngs | None = None,
    ) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """Bilinear with aligned corners. https://docs.pytorch.org/docs/stable/generated/torch.nn.UpsamplingBilinear2d.html"""

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        *,
        rngs: nnx.Rngs | None = None,
    ) -> None:
        super().__init__(size, scale_factor, "bilinear", align_corners=True)
