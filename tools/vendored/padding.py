"""Padding with PyTorch's argument order: pairs (low, high), last axis first."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax

from migrate_agent.tools.vendored.numeric import to_tuple


def pad(input: jax.Array, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> jax.Array:
    """Pads the last `len(pad) / 2` axes; negative amounts crop. `mode` is `constant` (`zeros`), `reflect`, `replicate` or `circular`.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.pad.html
    """
    pairs = [(int(low), int(high)) for low, high in zip(pad[::2], pad[1::2], strict=True)]
    if mode in ("constant", "zeros"):
        if any(size + min(low, 0) + min(high, 0) < 0 for size, (low, high) in zip(reversed(input.shape), pairs, strict=False)):
            raise ValueError(f"an input of shape {input.shape} cannot be cropped by {tuple(pad)}")
        config = [(0, 0, 0)] * (input.ndim - len(pairs)) + [(low, high, 0) for low, high in reversed(pairs)]
        return lax.pad(input, jnp.asarray(0 if value is None else value, input.dtype), config)
    for offset, (low, high) in enumerate(pairs):
        axis = input.ndim - 1 - offset
        if low or high:
            input = jnp.take(input, padded_index(input.shape[axis], low, high, mode), axis=axis)
    return input


def padded_index(size: int, low: int, high: int, mode: str) -> np.ndarray:
    """For each element of the padded axis, the element of the axis that it copies."""
    positions = np.arange(-low, size + high)
    if mode == "circular":  # what is cropped is gone before the rest goes round
        start, kept = max(-low, 0), size + min(low, 0) + min(high, 0)
        return start + np.arange(-max(low, 0), kept + max(high, 0)) % kept
    if mode == "replicate":
        return positions.clip(0, size - 1)
    if mode != "reflect":
        raise ValueError(f"unknown padding mode {mode!r}")
    if max(low, high) >= size:
        raise ValueError(f"reflection padding ({low}, {high}) must be less than the axis, which has {size} elements")
    return size - 1 - abs(size - 1 - abs(positions))


class PadNd(nnx.Module):
    """Pads the last `spatial` axes by `padding` (an integer, or pairs with the last axis first).

    https://docs.pytorch.org/docs/stable/nn.html#padding-layers
    """

    spatial = 0
    mode = "constant"

    def __init__(self, padding: int | Sequence[int], *, rngs: nnx.Rngs | None = None) -> None:
        self.padding = to_tuple(padding, 2 * self.spatial)

    def __call__(self, input: jax.Array) -> jax.Array:
        return pad(input, self.padding, self.mode)


class ConstantPadNd(nnx.Module):
    """Pads the last `spatial` axes with `value`. https://docs.pytorch.org/docs/stable/nn.html#padding-layers"""

    spatial = 0

    def __init__(self, padding: int | Sequence[int], value: float, *, rngs: nnx.Rngs | None = None) -> None:
        self.padding, self.value = to_tuple(padding, 2 * self.spatial), value

    def __call__(self, input: jax.Array) -> jax.Array:
        return pad(input, self.padding, "constant", self.value)


class ZeroPad1d(PadNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.ZeroPad1d.html"""

    spatial = 1


class ZeroPad2d(PadNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.ZeroPad2d.html"""

    spatial = 2


class ZeroPad3d(PadNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.ZeroPad3d.html"""

    spatial = 3


class ReflectionPad1d(PadNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.ReflectionPad1d.html"""

    spatial = 1
    mode = "reflect"


class ReflectionPad2d(PadNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.ReflectionPad2d.html"""

    spatial = 2
    mode = "reflect"


class ReflectionPad3d(PadNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.ReflectionPad3d.html"""

    spatial = 3
    mode = "reflect"


class ReplicationPad1d(PadNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.ReplicationPad1d.html"""

    spatial = 1
    mode = "replicate"


class ReplicationPad2d(PadNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.ReplicationPad2d.html"""

    spatial = 2
    mode = "replicate"


class ReplicationPad3d(PadNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.ReplicationPad3d.html"""

    spatial = 3
    mode = "replicate"


class CircularPad1d(PadNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.CircularPad1d.html"""

    spatial = 1
    mode = "circular"


class CircularPad2d(PadNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.CircularPad2d.html"""

    spatial = 2
    mode = "circular"


class CircularPad3d(PadNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.CircularPad3d.html"""

    spatial = 3
    mode = "circular"


class ConstantPad1d(ConstantPadNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.ConstantPad1d.html"""

    spatial = 1


class ConstantPad2d(ConstantPadNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.ConstantPad2d.html"""

    spatial = 2


class ConstantPad3d(ConstantPadNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.ConstantPad3d.html"""

    spatial = 3
