"""Margin, ranking and embedding loss layers with PyTorch's constructors. Weights are buffers, so they stand in the state dictionary."""

from collections.abc import Callable

import jax
from flax import nnx

from migrate_agent.tools.vendored.loss_layers import optional_buffer
from migrate_agent.tools.vendored.losses import legacy_reduction
from migrate_agent.tools.vendored.margin_losses import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from migrate_agent.tools.vendored.numeric import value_of


class MarginRankingLoss(nnx.Module):
    """max(0, -y (x1 - x2) + margin). https://docs.pytorch.org/docs/stable/generated/torch.nn.MarginRankingLoss.html"""

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        *,
        rngs: nnx.Rngs | None = None,
    ) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)
        self.margin = margin

    def __call__(self, input1: jax.Array, input2: jax.Array, target: jax.Array) -> jax.Array:
        return margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class HingeEmbeddingLoss(nnx.Module):
    """x or max(0, margin - x). https://docs.pytorch.org/docs/stable/generated/torch.nn.HingeEmbeddingLoss.html"""

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        *,
        rngs: nnx.Rngs | None = None,
    ) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)
        self.margin = margin

    def __call__(self, input: jax.Array, target: jax.Array) -> jax.Array:
        return hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class SoftMarginLoss(nnx.Module):
    """log(1 + exp(-y x)). https://docs.pytorch.org/docs/stable/generated/torch.nn.SoftMarginLoss.html"""

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", *, rngs: nnx.Rngs | None = None
    ) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)

    def __call__(self, input: jax.Array, target: jax.Array) -> jax.Array:
        return soft_margin_loss(input, target, reduction=self.reduction)


class MultiMarginLoss(nnx.Module):
    """Hinge loss over the other classes. https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiMarginLoss.html"""

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: jax.Array | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        *,
        rngs: nnx.Rngs | None = None,
    ) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)
        self.p = p
        self.margin = margin
        self.weight = nnx.data(optional_buffer(weight))

    def __call__(self, input: jax.Array, target: jax.Array) -> jax.Array:
        return multi_margin_loss(input, target, p=self.p, margin=self.margin, weight=value_of(self.weight), reduction=self.reduction)


class MultiLabelMarginLoss(nnx.Module):
    """Hinge loss between labels and other classes. https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiLabelMarginLoss.html"""

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", *, rngs: nnx.Rngs | None = None
    ) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)

    def __call__(self, input: jax.Array, target: jax.Array) -> jax.Array:
        return multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(nnx.Module):
    """Binary cross entropy averaged over classes. https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiLabelSoftMarginLoss.html"""

    def __init__(
        self,
        weight: jax.Array | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        *,
        rngs: nnx.Rngs | None = None,
    ) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)
        self.weight = nnx.data(optional_buffer(weight))

    def __call__(self, input: jax.Array, target: jax.Array) -> jax.Array:
        return multilabel_soft_margin_loss(input, target, weight=value_of(self.weight), reduction=self.reduction)


class CosineEmbeddingLoss(nnx.Module):
    """1 - cos, or max(0, cos - margin). https://docs.pytorch.org/docs/stable/generated/torch.nn.CosineEmbeddingLoss.html"""

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        *,
        rngs: nnx.Rngs | None = None,
    ) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)
        self.margin = margin

    def __call__(self, input1: jax.Array, input2: jax.Array, target: jax.Array) -> jax.Array:
        return cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class TripletMarginLoss(nnx.Module):
    """max(0, d(a, p) - d(a, n) + margin). https://docs.pytorch.org/docs/stable/generated/torch.nn.TripletMarginLoss.html"""

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        *,
        rngs: nnx.Rngs | None = None,
    ) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def __call__(self, anchor: jax.Array, positive: jax.Array, negative: jax.Array) -> jax.Array:
        return triplet_margin_loss(
            anchor, positive, negative, margin=self.margin, p=self.p, eps=self.eps, swap=self.swap, reduction=self.reduction
        )


class TripletMarginWithDistanceLoss(nnx.Module):
    """The triplet loss with any distance. https://docs.pytorch.org/docs/stable/generated/torch.nn.TripletMarginWithDistanceLoss.html"""

    def __init__(
        self,
        *,
        distance_function: Callable[[jax.Array, jax.Array], jax.Array] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
        rngs: nnx.Rngs | None = None,
    ) -> None:
        self.reduction = reduction
        self.distance_function = distance_function
        self.margin = margin
        self.swap = swap

    def __call__(self, anchor: jax.Array, positive: jax.Array, negative: jax.Array) -> jax.Array:
        return triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )
