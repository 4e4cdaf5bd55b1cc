"""Dropout with PyTorch's semantics: kept values are scaled by 1 / (1 - p)."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from flax import nnx


def dropout(input: jax.Array, p: float = 0.5, training: bool = True, inplace: bool = False, *, rngs: nnx.Rngs | None = None) -> jax.Array:
    """Zeroes each element with probability `p`.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.dropout.html
    """
    return drop(input, input.shape, p, training, rngs)


def drop(input: jax.Array, shape: Sequence[int], p: float, training: bool, rngs: nnx.Rngs | None) -> jax.Array:
    """Zeroes with probability `p`, drawing a mask of `shape` that broadcasts over `input`; raises `ValueError` without `rngs`."""
    if not training or p == 0.0:
        return input
    if p == 1.0:
        return jnp.zeros_like(input)
    if rngs is None:
        raise ValueError("dropout in training mode needs rngs")
    keep = jax.random.bernoulli(rngs.dropout(), 1 - p, tuple(shape))
    return jnp.where(keep, input / (1 - p), jnp.zeros_like(input))


def channel_mask_shape(input: jax.Array, batched_ndim: int) -> tuple[int, ...]:
    """The shape of a mask with one value for each channel of (N, C, …), or of (C, …) where `input` has fewer than `batched_ndim` axes."""
    leading = 2 if input.ndim >= batched_ndim else 1
    return (*input.shape[:leading], *[1] * (input.ndim - leading))


def dropout1d(input: jax.Array, p: float = 0.5, training: bool = True, inplace: bool = False, *, rngs: nnx.Rngs | None = None) -> jax.Array:
    """Zeroes whole channels of (N, C, L) or (C, L).

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.dropout1d.html
    """
    return drop(input, channel_mask_shape(input, 3), p, training, rngs)


def dropout2d(input: jax.Array, p: float = 0.5, training: bool = True, inplace: bool = False, *, rngs: nnx.Rngs | None = None) -> jax.Array:
    """Zeroes whole channels of (N, C, H, W); a 3-axis input is taken as (N, C, L), as PyTorch does.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.dropout2d.html
    """
    return drop(input, channel_mask_shape(input, 2), p, training, rngs)


def dropout3d(input: jax.Array, p: float = 0.5, training: bool = True, inplace: bool = False, *, rngs: nnx.Rngs | None = None) -> jax.Array:
    """Zeroes whole channels of (N, C, D, H, W) or (C, D, H, W).

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.dropout3d.html
    """
    return drop(input, channel_mask_shape(input, 5), p, training, rngs)


def alpha_drop(input: jax.Array, shape: Sequence[int], p: float, training: bool, rngs: nnx.Rngs | None) -> jax.Array:
    """Sets elements to SELU's negative saturation and keeps mean and variance of standard normal inputs."""
    if not training or p == 0.0:
        return input
    if p == 1.0:
        return jnp.zeros_like(input)
    if rngs is None:
        raise ValueError("dropout in training mode needs rngs")
    saturation = 1.7580993408473766
    scale = ((saturation**2 * p + 1) * (1 - p)) ** -0.5
    keep = jax.random.bernoulli(rngs.dropout(), 1 - p, tuple(shape))
    return jnp.where(keep, input, -saturation) * scale + saturation * scale * p


def alpha_dropout(
    input: jax.Array, p: float = 0.5, training: bool = False, inplace: bool = False, *, rngs: nnx.Rngs | None = None
) -> jax.Array:
    """Dropout for SELU networks.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.alpha_dropout.html
    """
    return alpha_drop(input, input.shape, p, training, rngs)


def feature_alpha_dropout(
    input: jax.Array, p: float = 0.5, training: bool = False, inplace: bool = False, *, rngs: nnx.Rngs | None = None
) -> jax.Array:
    """Dropout of whole channels of (N, C, …) for SELU networks.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.feature_alpha_dropout.html
    """
    return alpha_drop(input, channel_mask_shape(input, 2), p, training, rngs)


class Dropout(nnx.Dropout):
    """Zeroes each element with probability `p` while training.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.Dropout.html
    """

    def __init__(self, p: float = 0.5, inplace: bool = False, *, rngs: nnx.Rngs) -> None:
        super().__init__(p, rngs=rngs)

    @property
    def p(self) -> float:
        """The probability of an element to be zeroed."""
        return self.rate

    @p.setter
    def p(self, value: float) -> None:
        self.rate = value


class DropoutNd(nnx.Module):
    """What the other dropout layers share: `p`, `rngs`, and `deterministic`, which `train()` and `eval()` set."""

    def __init__(self, p: float = 0.5, inplace: bool = False, *, rngs: nnx.Rngs) -> None:
        self.p = p
        self.deterministic = False
        self.rngs = rngs


class Dropout1d(DropoutNd):
    """Zeroes whole channels of (N, C, L) or (C, L). https://docs.pytorch.org/docs/stable/generated/torch.nn.Dropout1d.html"""

    def __call__(self, input: jax.Array) -> jax.Array:
        return dropout1d(input, self.p, not self.deterministic, rngs=self.rngs)


class Dropout2d(DropoutNd):
    """Zeroes whole channels of (N, C, H, W). https://docs.pytorch.org/docs/stable/generated/torch.nn.Dropout2d.html"""

    def __call__(self, input: jax.Array) -> jax.Array:
        return dropout2d(input, self.p, not self.deterministic, rngs=self.rngs)


class Dropout3d(DropoutNd):
    """Zeroes whole channels of (N, C, D, H, W). https://docs.pytorch.org/docs/stable/generated/torch.nn.Dropout3d.html"""

    def __call__(self, input: jax.Array) -> jax.Array:
        return dropout3d(input, self.p, not self.deterministic, rngs=self.rngs)


class AlphaDropout(DropoutNd):
    """Dropout for SELU networks. https://docs.pytorch.org/docs/stable/generated/torch.nn.AlphaDropout.html"""

    def __call__(self, input: jax.Array) -> jax.Array:
        return alpha_dropout(input, self.p, not self.deterministic, rngs=self.rngs)


class FeatureAlphaDropout(DropoutNd):
    """Dropout of channels for SELU networks. https://docs.pytorch.org/docs/stable/generated/torch.nn.FeatureAlphaDropout.html"""

    def __call__(self, input: jax.Array) -> jax.Array:
        return feature_alpha_dropout(input, self.p, not self.deterministic, rngs=self.rngs)
