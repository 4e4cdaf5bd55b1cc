"""Loss layers with PyTorch's constructors. Weights are buffers, so they stand in the state dictionary."""

from collections.abc import Callable

import jax
from flax import nnx

from migrate_agent.tools.vendored.ctc import ctc_loss
from migrate_agent.tools.vendored.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    gaussian_nll_loss,
    huber_loss,
    kl_div,
    l1_loss,
    legacy_reduction,
    mse_loss,
    nll_loss,
    poisson_nll_loss,
    smooth_l1_loss,
)
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


def optional_buffer(value: jax.Array | None) -> nnx.Variable[jax.Array] | None:
    """A persistent buffer holding `value`, or `None`."""
    return None if value is None else nnx.Variable(value)


class MSELoss(nnx.Module):
    """Mean squared error. https://docs.pytorch.org/docs/stable/generated/torch.nn.MSELoss.html"""

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", *, rngs: nnx.Rngs | None = None) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)

    def __call__(self, input: jax.Array, target: jax.Array) -> jax.Array:
        return mse_loss(input, target, reduction=self.reduction)


class L1Loss(nnx.Module):
    """Mean absolute error. https://docs.pytorch.org/docs/stable/generated/torch.nn.L1Loss.html"""

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", *, rngs: nnx.Rngs | None = None) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)

    def __call__(self, input: jax.Array, target: jax.Array) -> jax.Array:
        return l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(nnx.Module):
    """Squared below beta, linear above. https://docs.pytorch.org/docs/stable/generated/torch.nn.SmoothL1Loss.html"""

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", beta: float = 1.0, *, rngs: nnx.Rngs | None = None) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)
        self.beta = beta

    def __call__(self, input: jax.Array, target: jax.Array) -> jax.Array:
        return smooth_l1_loss(input, target, beta=self.beta, reduction=self.reduction)


class HuberLoss(nnx.Module):
    """Squared below delta, linear above. https://docs.pytorch.org/docs/stable/generated/torch.nn.HuberLoss.html"""

    def __init__(self, reduction: str = "mean", delta: float = 1.0, *, rngs: nnx.Rngs | None = None) -> None:
        self.reduction = reduction
        self.delta = delta

    def __call__(self, input: jax.Array, target: jax.Array) -> jax.Array:
        return huber_loss(input, target, delta=self.delta, reduction=self.reduction)


class BCELoss(nnx.Module):
    """Binary cross entropy of probabilities. https://docs.pytorch.org/docs/stable/generated/torch.nn.BCELoss.html"""

    def __init__(self, weight: jax.Array | None = None, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", *, rngs: nnx.Rngs | None = None) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)
        self.weight = nnx.data(optional_buffer(weight))

    def __call__(self, input: jax.Array, target: jax.Array) -> jax.Array:
        return binary_cross_entropy(input, target, weight=value_of(self.weight), reduction=self.reduction)


class BCEWithLogitsLoss(nnx.Module):
    """Binary cross entropy of logits. https://docs.pytorch.org/docs/stable/generated/torch.nn.BCEWithLogitsLoss.html"""

    def __init__(self, weight: jax.Array | None = None, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", pos_weight: jax.Array | None = None, *, rngs: nnx.Rngs | None = None) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)
        self.weight = nnx.data(optional_buffer(weight))
        self.pos_weight = nnx.data(optional_buffer(pos_weight))

    def __call__(self, input: jax.Array, target: jax.Array) -> jax.Array:
        return binary_cross_entropy_with_logits(input, target, weight=value_of(self.weight), pos_weight=value_of(self.pos_weight), reduction=self.reduction)


class NLLLoss(nnx.Module):
    """Negative log likelihood of class indices. https://docs.pytorch.org/docs/stable/generated/torch.nn.NLLLoss.html"""

    def __init__(self, weight: jax.Array | None = None, size_average: bool | None = None, ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean", *, rngs: nnx.Rngs | None = None) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)
        self.weight = nnx.data(optional_buffer(weight))
        self.ignore_index = ignore_index

    def __call__(self, input: jax.Array, target: jax.Array) -> jax.Array:
        return nll_loss(input, target, weight=value_of(self.weight), ignore_index=self.ignore_index, reduction=self.reduction)


class CrossEntropyLoss(nnx.Module):
    """Cross entropy of logits. https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html"""

    def __init__(self, weight: jax.Array | None = None, size_average: bool | None = None, ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean", label_smoothing: float = 0.0, *, rngs: nnx.Rngs | None = None) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)
        self.weight = nnx.data(optional_buffer(weight))
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def __call__(self, input: jax.Array, target: jax.Array) -> jax.Array:
        return cross_entropy(input, target, weight=value_of(self.weight), ignore_index=self.ignore_index, label_smoothing=self.label_smoothing, reduction=self.reduction)


class KLDivLoss(nnx.Module):
    """Kullback-Leibler divergence of log-probabilities. https://docs.pytorch.org/docs/stable/generated/torch.nn.KLDivLoss.html"""

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", log_target: bool = False, *, rngs: nnx.Rngs | None = None) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)
        self.log_target = log_target

    def __call__(self, input: jax.Array, target: jax.Array) -> jax.Array:
        return kl_div(input, target, log_target=self.log_target, reduction=self.reduction)


class PoissonNLLLoss(nnx.Module):
    """Negative log likelihood of Poisson counts. https://docs.pytorch.org/docs/stable/generated/torch.nn.PoissonNLLLoss.html"""

    def __init__(self, log_input: bool = True, full: bool = False, size_average: bool | None = None, eps: float = 1e-8, reduce: bool | None = None, reduction: str = "mean", *, rngs: nnx.Rngs | None = None) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def __call__(self, log_input: jax.Array, target: jax.Array) -> jax.Array:
        return poisson_nll_loss(log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction)


class GaussianNLLLoss(nnx.Module):
    """Negative log likelihood of normal values. https://docs.pytorch.org/docs/stable/generated/torch.nn.GaussianNLLLoss.html"""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean", rngs: nnx.Rngs | None = None) -> None:
        self.reduction = reduction
        self.full = full
        self.eps = eps

    def __call__(self, input: jax.Array, target: jax.Array, var: jax.Array | float) -> jax.Array:
        return gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class MarginRankingLoss(nnx.Module):
    """max(0, -y (x1 - x2) + margin). https://docs.pytorch.org/docs/stable/generated/torch.nn.MarginRankingLoss.html"""

    def __init__(self, margin: float = 0.0, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", *, rngs: nnx.Rngs | None = None) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)
        self.margin = margin

    def __call__(self, input1: jax.Array, input2: jax.Array, target: jax.Array) -> jax.Array:
        return margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class HingeEmbeddingLoss(nnx.Module):
    """x or max(0, margin - x). https://docs.pytorch.org/docs/stable/generated/torch.nn.HingeEmbeddingLoss.html"""

    def __init__(self, margin: float = 1.0, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", *, rngs: nnx.Rngs | None = None) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)
        self.margin = margin

    def __call__(self, input: jax.Array, target: jax.Array) -> jax.Array:
        return hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class SoftMarginLoss(nnx.Module):
    """log(1 + exp(-y x)). https://docs.pytorch.org/docs/stable/generated/torch.nn.SoftMarginLoss.html"""

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", *, rngs: nnx.Rngs | None = None) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)

    def __call__(self, input: jax.Array, target: jax.Array) -> jax.Array:
        return soft_margin_loss(input, target, reduction=self.reduction)


class MultiMarginLoss(nnx.Module):
    """Hinge loss over the other classes. https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiMarginLoss.html"""

    def __init__(self, p: int = 1, margin: float = 1.0, weight: jax.Array | None = None, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", *, rngs: nnx.Rngs | None = None) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)
        self.p = p
        self.margin = margin
        self.weight = nnx.data(optional_buffer(weight))

    def __call__(self, input: jax.Array, target: jax.Array) -> jax.Array:
        return multi_margin_loss(input, target, p=self.p, margin=self.margin, weight=value_of(self.weight), reduction=self.reduction)


class MultiLabelMarginLoss(nnx.Module):
    """Hinge loss between labels and other classes. https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiLabelMarginLoss.html"""

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", *, rngs: nnx.Rngs | None = None) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)

    def __call__(self, input: jax.Array, target: jax.Array) -> jax.Array:
        return multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(nnx.Module):
    """Binary cross entropy averaged over classes. https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiLabelSoftMarginLoss.html"""

    def __init__(self, weight: jax.Array | None = None, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", *, rngs: nnx.Rngs | None = None) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)
        self.weight = nnx.data(optional_buffer(weight))

    def __call__(self, input: jax.Array, target: jax.Array) -> jax.Array:
        return multilabel_soft_margin_loss(input, target, weight=value_of(self.weight), reduction=self.reduction)


class CosineEmbeddingLoss(nnx.Module):
    """1 - cos, or max(0, cos - margin). https://docs.pytorch.org/docs/stable/generated/torch.nn.CosineEmbeddingLoss.html"""

    def __init__(self, margin: float = 0.0, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", *, rngs: nnx.Rngs | None = None) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)
        self.margin = margin

    def __call__(self, input1: jax.Array, input2: jax.Array, target: jax.Array) -> jax.Array:
        return cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class TripletMarginLoss(nnx.Module):
    """max(0, d(a, p) - d(a, n) + margin). https://docs.pytorch.org/docs/stable/generated/torch.nn.TripletMarginLoss.html"""

    def __init__(self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", *, rngs: nnx.Rngs | None = None) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def __call__(self, anchor: jax.Array, positive: jax.Array, negative: jax.Array) -> jax.Array:
        return triplet_margin_loss(anchor, positive, negative, margin=self.margin, p=self.p, eps=self.eps, swap=self.swap, reduction=self.reduction)


class TripletMarginWithDistanceLoss(nnx.Module):
    """The triplet loss with any distance. https://docs.pytorch.org/docs/stable/generated/torch.nn.TripletMarginWithDistanceLoss.html"""

    def __init__(self, *, distance_function: Callable[[jax.Array, jax.Array], jax.Array] | None = None, margin: float = 1.0, swap: bool = False, reduction: str = "mean", rngs: nnx.Rngs | None = None) -> None:
        self.reduction = reduction
        self.distance_function = distance_function
        self.margin = margin
        self.swap = swap

    def __call__(self, anchor: jax.Array, positive: jax.Array, negative: jax.Array) -> jax.Array:
        return triplet_margin_with_distance_loss(anchor, positive, negative, distance_function=self.distance_function, margin=self.margin, swap=self.swap, reduction=self.reduction)


class CTCLoss(nnx.Module):
    """Connectionist temporal classification. https://docs.pytorch.org/docs/stable/generated/torch.nn.CTCLoss.html"""

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False, *, rngs: nnx.Rngs | None = None) -> None:
        self.reduction = reduction
        self.blank = blank
        self.zero_infinity = zero_infinity

    def __call__(self, log_probs: jax.Array, targets: jax.Array, input_lengths: jax.Array, target_lengths: jax.Array) -> jax.Array:
        return ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=self.blank, zero_infinity=self.zero_infinity, reduction=self.reduction)
