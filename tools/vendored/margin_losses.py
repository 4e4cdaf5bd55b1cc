"""Margin, ranking and embedding losses with PyTorch's semantics."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from migrate_agent.tools.vendored.distance import pairwise_distance
from migrate_agent.tools.vendored.losses import legacy_reduction, reduce_loss


def relu_of(x: jax.Array) -> jax.Array:
    """max(x, 0), whose gradient at the kink is one, as that of PyTorch's `clamp_min`."""
    return jnp.where(x < 0, 0, x)


def margin_ranking_loss(
    input1: jax.Array,
    input2: jax.Array,
    target: jax.Array,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> jax.Array:
    """max(0, -y (x1 - x2) + margin).

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.margin_ranking_loss.html
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    return reduce_loss(relu_of(-target * (input1 - input2) + margin), reduction)


def hinge_embedding_loss(
    input: jax.Array,
    target: jax.Array,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> jax.Array:
    """x where the target is 1, max(0, margin - x) where it is -1.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.hinge_embedding_loss.html
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    apart = jnp.where(target != 1, relu_of(margin - input), 0)
    return reduce_loss(apart + jnp.where(target != -1, input, 0), reduction)


def soft_margin_loss(
    input: jax.Array,
    target: jax.Array,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> jax.Array:
    """log(1 + exp(-y x)). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.soft_margin_loss.html"""
    reduction = legacy_reduction(size_average, reduce, reduction)
    return reduce_loss(jnp.log1p(jnp.exp(-target * input)), reduction)


def multi_margin_loss(
    input: jax.Array,
    target: jax.Array,
    p: int = 1,
    margin: float = 1.0,
    weight: jax.Array | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> jax.Array:
    """Σ max(0, margin - x[y] + x[i])ᵖ / C over the other classes, for (N, C) or (C,).

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.multi_margin_loss.html
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    input = jnp.atleast_1d(input)
    index = target.reshape(input.shape[:-1])[..., None]
    gap = margin - jnp.take_along_axis(input, index, -1) + input
    loss = jnp.where(gap > 0, gap, 0) ** p
    loss = loss if weight is None else loss * weight[index]
    others = jnp.arange(input.shape[-1]) != index
    return reduce_loss(jnp.where(others, loss, 0).sum(-1) / input.shape[-1], reduction)


def multilabel_margin_loss(
    input: jax.Array,
    target: jax.Array,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> jax.Array:
    """Σ max(0, 1 - x[y] + x[i]) / C over the labels y up to the first -1 and the classes i that are no label.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.multilabel_margin_loss.html
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    input, target = jnp.atleast_1d(input), jnp.atleast_1d(target)
    classes = input.shape[-1]
    valid = jnp.cumprod(target >= 0, axis=-1).astype(bool)
    labels = jnp.where(valid, target, 0)
    is_label = (jax.nn.one_hot(labels, classes, dtype=bool) & valid[..., None]).any(-2)
    gap = 1 - jnp.take_along_axis(input, labels, -1)[..., :, None] + input[..., None, :]
    counted = valid[..., :, None] & ~is_label[..., None, :] & (gap > 0)
    return reduce_loss(jnp.where(counted, gap, 0).sum((-1, -2)) / classes, reduction)


def multilabel_soft_margin_loss(
    input: jax.Array,
    target: jax.Array,
    weight: jax.Array | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> jax.Array:
    """The mean over classes of the binary cross entropy of sigmoid(x).

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.multilabel_soft_margin_loss.html
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    loss = -(target * jax.nn.log_sigmoid(input) + (1 - target) * jax.nn.log_sigmoid(-input))
    return reduce_loss((loss if weight is None else loss * weight).mean(-1), reduction)


def cosine_embedding_loss(
    input1: jax.Array,
    input2: jax.Array,
    target: jax.Array,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> jax.Array:
    """1 - cos(x1, x2) where the target is 1, max(0, cos - margin) where it is -1, for (N, D) or (D,).

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.cosine_embedding_loss.html
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    product = (input1 * input2).sum(-1)
    squares = (jnp.square(input1).sum(-1) + 1e-12) * (jnp.square(input2).sum(-1) + 1e-12)
    cosine = product / jnp.sqrt(squares)
    loss = jnp.where(target == 1, 1 - cosine, 0) + jnp.where(target == -1, relu_of(cosine - margin), 0)
    return reduce_loss(loss, reduction)


def triplet_margin_loss(
    anchor: jax.Array,
    positive: jax.Array,
    negative: jax.Array,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> jax.Array:
    """max(0, d(a, p) - d(a, n) + margin) with the p-norm distance.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.triplet_margin_loss.html
    """
    reduction = legacy_reduction(size_average, reduce, reduction)

    def distance(x1: jax.Array, x2: jax.Array) -> jax.Array:
        return pairwise_distance(x1, x2, p, eps)

    return triplet_margin_with_distance_loss(
        anchor, positive, negative, distance_function=distance, margin=margin, swap=swap, reduction=reduction
    )


def triplet_margin_with_distance_loss(
    anchor: jax.Array,
    positive: jax.Array,
    negative: jax.Array,
    *,
    distance_function: Callable[[jax.Array, jax.Array], jax.Array] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> jax.Array:
    """max(0, d(a, p) - d(a, n) + margin); with `swap`, d(p, n) takes the place of a larger d(a, n).

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.triplet_margin_with_distance_loss.html
    """
    distance = distance_function or pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = jnp.minimum(far, distance(positive, negative))
    return reduce_loss(relu_of(near - far + margin), reduction)
