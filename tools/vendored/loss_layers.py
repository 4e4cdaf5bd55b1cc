"""Loss layers with PyTorch's constructors. Weights are buffers, so they stand in the state dictionary."""

import math
from typing import Any

import jax
from flax import nnx

from migrate_agent.tools.vendored.ctc import ctc_loss
from migrate_agent.tools.vendored.linear import Linear
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
from migrate_agent.tools.vendored.numeric import cast_parameters, value_of


def optional_buffer(value: jax.Array | None) -> nnx.Variable[jax.Array] | None:
    """A persistent buffer holding `value`, or `None`."""
    return None if value is None else nnx.Variable(value)


class Loss(nnx.Module):
    """What losses share, as a base class of one's own: `torch.nn.modules.loss._Loss`."""

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", *, rngs: nnx.Rngs | None = None
    ) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)


class WeightedLoss(Loss):
    """A loss with a buffer `weight`, or `None`, as a base class of one's own: `torch.nn.modules.loss._WeightedLoss`."""

    def __init__(
        self,
        weight: jax.Array | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        *,
        rngs: nnx.Rngs | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.weight = nnx.data(optional_buffer(weight))


class MSELoss(Loss):
    """Mean squared error. https://docs.pytorch.org/docs/stable/generated/torch.nn.MSELoss.html"""

    def __call__(self, input: jax.Array, target: jax.Array) -> jax.Array:
        return mse_loss(input, target, reduction=self.reduction)


class L1Loss(Loss):
    """Mean absolute error. https://docs.pytorch.org/docs/stable/generated/torch.nn.L1Loss.html"""

    def __call__(self, input: jax.Array, target: jax.Array) -> jax.Array:
        return l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(nnx.Module):
    """Squared below beta, linear above. https://docs.pytorch.org/docs/stable/generated/torch.nn.SmoothL1Loss.html"""

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
        *,
        rngs: nnx.Rngs | None = None,
    ) -> None:
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


class BCELoss(WeightedLoss):
    """Binary cross entropy of probabilities. https://docs.pytorch.org/docs/stable/generated/torch.nn.BCELoss.html"""

    def __call__(self, input: jax.Array, target: jax.Array) -> jax.Array:
        return binary_cross_entropy(input, target, weight=value_of(self.weight), reduction=self.reduction)


class BCEWithLogitsLoss(nnx.Module):
    """Binary cross entropy of logits. https://docs.pytorch.org/docs/stable/generated/torch.nn.BCEWithLogitsLoss.html"""

    def __init__(
        self,
        weight: jax.Array | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: jax.Array | None = None,
        *,
        rngs: nnx.Rngs | None = None,
    ) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)
        self.weight = nnx.data(optional_buffer(weight))
        self.pos_weight = nnx.data(optional_buffer(pos_weight))

    def __call__(self, input: jax.Array, target: jax.Array) -> jax.Array:
        return binary_cross_entropy_with_logits(
            input, target, weight=value_of(self.weight), pos_weight=value_of(self.pos_weight), reduction=self.reduction
        )


class NLLLoss(nnx.Module):
    """Negative log likelihood of class indices. https://docs.pytorch.org/docs/stable/generated/torch.nn.NLLLoss.html"""

    def __init__(
        self,
        weight: jax.Array | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        *,
        rngs: nnx.Rngs | None = None,
    ) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)
        self.weight = nnx.data(optional_buffer(weight))
        self.ignore_index = ignore_index

    def __call__(self, input: jax.Array, target: jax.Array) -> jax.Array:
        return nll_loss(input, target, weight=value_of(self.weight), ignore_index=self.ignore_index, reduction=self.reduction)


class CrossEntropyLoss(nnx.Module):
    """Cross entropy of logits. https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html"""

    def __init__(
        self,
        weight: jax.Array | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        *,
        rngs: nnx.Rngs | None = None,
    ) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)
        self.weight = nnx.data(optional_buffer(weight))
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def __call__(self, input: jax.Array, target: jax.Array) -> jax.Array:
        return cross_entropy(
            input,
            target,
            weight=value_of(self.weight),
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            reduction=self.reduction,
        )


class LinearCrossEntropyLoss(nnx.Module):
    """Cross entropy of the logits `linear(x)` (N, classes, …). The chunking `options` change speed only, and are ignored.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.LinearCrossEntropyLoss.html
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: jax.Array | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: Any = None,
        rngs: nnx.Rngs,
    ) -> None:
        self.num_classes, self.out_features, self.reduction = num_classes, out_features, reduction
        self.ignore_index, self.label_smoothing = -100 if ignore_index is None else ignore_index, label_smoothing
        self.weight = nnx.data(optional_buffer(weight))
        self.linear = Linear(in_features, num_classes * math.prod(out_features), bias, rngs=rngs)
        cast_parameters(self, dtype)

    def __call__(self, input: jax.Array, target: jax.Array) -> jax.Array:
        logits = self.linear(input).reshape(*input.shape[:-1], self.num_classes, *self.out_features)
        return cross_entropy(
            logits,
            target,
            value_of(self.weight),
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class KLDivLoss(nnx.Module):
    """Kullback-Leibler divergence of log-probabilities. https://docs.pytorch.org/docs/stable/generated/torch.nn.KLDivLoss.html"""

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
        *,
        rngs: nnx.Rngs | None = None,
    ) -> None:
        self.reduction = legacy_reduction(size_average, reduce, reduction)
        self.log_target = log_target

    def __call__(self, input: jax.Array, target: jax.Array) -> jax.Array:
        return kl_div(input, target, log_target=self.log_target, reduction=self.reduction)


class PoissonNLLLoss(nnx.Module):
    """Negative log likelihood of Poisson counts. https://docs.pytorch.org/docs/stable/generated/torch.nn.PoissonNLLLoss.html"""

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
        *,
        rngs: nnx.Rngs | None = None,
    ) -> None:
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


class CTCLoss(nnx.Module):
    """Connectionist temporal classification. https://docs.pytorch.org/docs/stable/generated/torch.nn.CTCLoss.html"""

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False, *, rngs: nnx.Rngs | None = None) -> None:
        self.reduction = reduction
        self.blank = blank
        self.zero_infinity = zero_infinity

    def __call__(self, log_probs: jax.Array, targets: jax.Array, input_lengths: jax.Array, target_lengths: jax.Array) -> jax.Array:
        return ctc_loss(
            log_probs, targets, input_lengths, target_lengths, blank=self.blank, zero_infinity=self.zero_infinity, reduction=self.reduction
        )
