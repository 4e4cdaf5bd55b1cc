"""Layers' functions in the few lines that common uses need."""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp


def label_cross_entropy(logits: jax.Array, labels: jax.Array, ignore_index: int = -100, axis: int = -1) -> jax.Array:
    """The mean cross entropy of `logits`, whose classes lie along `axis`, over the `labels` (its other axes) that are not `ignore_index`.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.cross_entropy.html
    """
    log_probabilities = jax.nn.log_softmax(logits, axis)
    losses = -jnp.take_along_axis(log_probabilities, jnp.expand_dims(labels, axis), axis).squeeze(axis)
    return losses.mean(where=labels != ignore_index)


def label_losses(logits: jax.Array, labels: jax.Array, ignore_index: int = -100, axis: int = -1) -> jax.Array:
    """The cross entropy of `logits`, whose classes lie along `axis`, for each of the `labels`; 0 where that is `ignore_index`."""
    log_probabilities = jax.nn.log_softmax(logits, axis)
    losses = -jnp.take_along_axis(log_probabilities, jnp.expand_dims(labels, axis), axis).squeeze(axis)
    return jnp.where(labels != ignore_index, losses, 0)


def to_unit_length(x: jax.Array, axis: int = 1, epsilon: float = 1e-12) -> jax.Array:
    """A real `x` over its 2-norm along an axis, which is taken for `epsilon` where it is less."""
    length = euclidean_norm(x, axis, keepdims=True)
    return x / jnp.where(length < epsilon, epsilon, length)


def largest_along_last(x: jax.Array, k: int) -> tuple[jax.Array, jax.Array]:
    """The `k` largest along the last axis, NaN before all others, and their indices as integers of the usual width."""
    # `top_k` has NaN first or last by its sign, which is up to the machine.
    _, indices = jax.lax.top_k(jnp.where(jnp.isnan(x), abs(x), x), k)
    return jnp.take_along_axis(x, indices, -1), indices.astype(int)


def normalise_last(x: jax.Array, scale: jax.Array | None, bias: jax.Array | None, epsilon: float) -> jax.Array:
    """Layer normalisation over the last axis of `x` (…, d), with `scale` and `bias` (d,) where there are any."""
    x = jax.nn.standardize(x, variance=x.var(-1, keepdims=True), epsilon=epsilon)
    x = x if scale is None else x * scale
    return x if bias is None else x + bias


def euclidean_norm(x: jax.Array, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> jax.Array:
    """The 2-norm of a real `x` over some axes, or over all elements; at 0 its gradient is 0, as in torch."""
    squares = jnp.sum(x * x, axis, keepdims=keepdims)
    return jnp.where(squares == 0, squares, jnp.sqrt(jnp.where(squares == 0, 1, squares)))


def channels_first_pool(
    pool: Callable[..., jax.Array], x: jax.Array, window: tuple[int, ...], strides: tuple[int, ...], padding: int = 0
) -> jax.Array:
    """Flax's pooling over (N, C, …) or (C, …), with as much padding on all sides."""
    channels = -1 - len(window)
    pooled = pool(jnp.moveaxis(x, channels, -1), window, strides=strides, padding=[(padding, padding)] * len(window))
    return jnp.moveaxis(pooled, -1, channels)
