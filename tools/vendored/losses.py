"""Losses for regression and classification with PyTorch's semantics."""

import math

import jax
import jax.numpy as jnp

from migrate_agent.tools.vendored.numeric import absolute, promote_half


def reduce_loss(loss: jax.Array, reduction: str) -> jax.Array:
    """`loss` itself ("none"), its mean or its sum. Raises `ValueError` for another `reduction`."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction!r} is not a valid value for reduction")
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


def legacy_reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """What PyTorch's deprecated `size_average` and `reduce` mean; `reduction` where neither is given.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.MSELoss.html
    """
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def mse_loss(
    input: jax.Array,
    target: jax.Array,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: jax.Array | None = None,
) -> jax.Array:
    """(input - target)². With a weight, "mean" divides by the sum of the weights.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.mse_loss.html
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    loss = jnp.square(input - target)
    return reduce_loss(loss, reduction) if weight is None else reduce_weighted(loss, weight, reduction)


def l1_loss(
    input: jax.Array,
    target: jax.Array,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: jax.Array | None = None,
) -> jax.Array:
    """|input - target|. With a weight, "mean" divides by the sum of the weights.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.l1_loss.html
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    loss = absolute(input - target)
    return reduce_loss(loss, reduction) if weight is None else reduce_weighted(loss, weight, reduction)


def reduce_weighted(loss: jax.Array, weight: jax.Array, reduction: str) -> jax.Array:
    """`loss * weight` reduced; "mean" divides by the sum of the weights."""
    weighted = loss * weight
    if reduction == "mean":
        return weighted.sum() / jnp.broadcast_to(weight, loss.shape).sum()
    return reduce_loss(weighted, reduction)


def smooth_l1_loss(
    input: jax.Array,
    target: jax.Array,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> jax.Array:
    """Squared below `beta`, linear above. https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.smooth_l1_loss.html"""
    reduction = legacy_reduction(size_average, reduce, reduction)
    distance = absolute(input - target)
    if beta == 0.0:
        return reduce_loss(distance, reduction)
    loss = jnp.where(distance < beta, 0.5 * jnp.square(distance) / beta, distance - 0.5 * beta)
    return reduce_loss(loss, reduction)


def huber_loss(
    input: jax.Array, target: jax.Array, reduction: str = "mean", delta: float = 1.0, weight: jax.Array | None = None
) -> jax.Array:
    """Squared below `delta`, linear with slope `delta` above.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.huber_loss.html
    """
    distance = absolute(input - target)
    loss = jnp.where(distance <= delta, 0.5 * jnp.square(distance), delta * (distance - 0.5 * delta))
    return reduce_loss(loss, reduction) if weight is None else reduce_weighted(loss, weight, reduction)


def binary_cross_entropy(
    input: jax.Array,
    target: jax.Array,
    weight: jax.Array | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> jax.Array:
    """-(y log x + (1 - y) log(1 - x)), the logarithms clipped at -100 (which cuts their gradient no more than PyTorch's 1e-12 floor).

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.binary_cross_entropy.html
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    loss = binary_entropy(input, target)
    return reduce_loss(loss if weight is None else loss * weight, reduction)


@jax.custom_jvp
def binary_entropy(input: jax.Array, target: jax.Array) -> jax.Array:
    """-(y log x + (1 - y) log(1 - x)) with logarithms of at least -100."""
    return (target - 1) * jnp.maximum(jnp.log1p(-input), -100) - target * jnp.maximum(jnp.log(input), -100)


@binary_entropy.defjvp
def binary_entropy_jvp(primals: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
    """The derivative that PyTorch uses: (x - y) / max(x (1 - x), 1e-12)."""
    (input, target), (input_dot, target_dot) = primals, tangents
    slope = (input - target) / jnp.maximum(input * (1 - input), 1e-12)
    target_slope = jnp.maximum(jnp.log1p(-input), -100) - jnp.maximum(jnp.log(input), -100)
    return binary_entropy(input, target), slope * input_dot + target_slope * target_dot


def binary_cross_entropy_with_logits(
    input: jax.Array,
    target: jax.Array,
    weight: jax.Array | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: jax.Array | None = None,
) -> jax.Array:
    """Binary cross entropy of sigmoid(input), with a weight for positives.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.binary_cross_entropy_with_logits.html
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    log_sigmoid = jax.nn.log_sigmoid(input)
    if pos_weight is None:
        loss = (1 - target) * input - log_sigmoid
    else:
        loss = (1 - target) * input - (1 + (pos_weight - 1) * target) * log_sigmoid
    return reduce_loss(loss if weight is None else loss * weight, reduction)


def nll_loss(
    input: jax.Array,
    target: jax.Array,
    weight: jax.Array | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> jax.Array:
    """Minus the log-probability of the target class: (N, C, …) or (C,) and integers (N, …), () or (1,).

    The mean is weighted, over the targets that are not `ignore_index`.
    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.nll_loss.html
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    axis = min(1, input.ndim - 1)
    target = target.reshape(input.shape[:axis] + input.shape[axis + 1 :])  # torch takes (1,) for ()
    keep = target != ignore_index
    index = jnp.where(keep, target, 0)
    chosen = jnp.take_along_axis(input, jnp.expand_dims(index, axis), axis).squeeze(axis)
    weights = jnp.where(keep, jnp.ones((), input.dtype) if weight is None else weight[index], 0)
    loss = jnp.where(keep, -chosen * weights, 0)
    return loss.sum() / weights.sum() if reduction == "mean" else reduce_loss(loss, reduction)


def cross_entropy(
    input: jax.Array,
    target: jax.Array,
    weight: jax.Array | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> jax.Array:
    """Cross entropy of softmax(input) (N, C, …) or (C,) with class indices (N, …) or (), or with class probabilities of the input's shape.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.cross_entropy.html
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    axis = min(1, input.ndim - 1)
    log_probability = jax.nn.log_softmax(promote_half(input), axis)
    if jnp.issubdtype(target.dtype, jnp.floating):
        loss = soft_cross_entropy(log_probability, target, weight, axis, reduction, label_smoothing)
    elif label_smoothing == 0.0:
        loss = nll_loss(log_probability, target, weight, ignore_index=ignore_index, reduction=reduction)
    else:
        loss = smoothed_cross_entropy(log_probability, target, weight, axis, ignore_index, reduction, label_smoothing)
    return loss.astype(input.dtype)


def along_axis(values: jax.Array | None, axis: int, ndim: int) -> jax.Array | float:
    """(C,) shaped to broadcast along `axis` of `ndim` axes; 1 for None."""
    return 1.0 if values is None else values.reshape([-1 if i == axis else 1 for i in range(ndim)])


def soft_cross_entropy(
    log_probability: jax.Array, target: jax.Array, weight: jax.Array | None, axis: int, reduction: str, smoothing: float
) -> jax.Array:
    """Cross entropy with class probabilities; the mean is over all but the class axis."""
    classes = log_probability.shape[axis]
    target = target * (1 - smoothing) + smoothing / classes
    loss = -(log_probability * target * along_axis(weight, axis, log_probability.ndim)).sum(axis)
    return loss.sum() / max(1, loss.size) if reduction == "mean" else reduce_loss(loss, reduction)


def smoothed_cross_entropy(
    log_probability: jax.Array,
    target: jax.Array,
    weight: jax.Array | None,
    axis: int,
    ignore_index: int,
    reduction: str,
    smoothing: float,
) -> jax.Array:
    """Cross entropy with class indices, of which `smoothing` goes to all classes evenly."""
    keep = target != ignore_index
    hard = nll_loss(log_probability, target, weight, ignore_index=ignore_index, reduction=reduction)
    uniform = -(log_probability * along_axis(weight, axis, log_probability.ndim)).sum(axis)
    uniform = jnp.where(keep, uniform, 0)
    if reduction == "mean":
        weights = keep if weight is None else jnp.where(keep, weight[jnp.where(keep, target, 0)], 0)
        soft = uniform.sum() / weights.sum().astype(uniform.dtype)
    else:
        soft = reduce_loss(uniform, reduction)
    return (1 - smoothing) * hard + smoothing / log_probability.shape[axis] * soft


def kl_div(
    input: jax.Array,
    target: jax.Array,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> jax.Array:
    """target (log target - input), for log-probabilities `input`; "batchmean" divides the sum by the first axis.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.kl_div.html
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    if log_target:
        loss = jnp.exp(target) * (target - input)
    else:
        positive = target > 0
        entropy = jnp.where(target == 0, 0, target * jnp.log(jnp.where(positive, target, jnp.where(target == 0, 1, jnp.nan))))
        loss = entropy - target * input
    if reduction == "batchmean":
        return loss.sum() / input.shape[0] if input.ndim else loss
    return reduce_loss(loss, reduction)


def poisson_nll_loss(
    input: jax.Array,
    target: jax.Array,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> jax.Array:
    """Negative log likelihood of a Poisson count; `full` adds Stirling's term.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.poisson_nll_loss.html
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    loss = jnp.exp(input) - target * input if log_input else input - target * jnp.log(input + eps)
    if full:
        stirling = target * jnp.log(target) - target + 0.5 * jnp.log(2 * math.pi * target)
        loss = loss + jnp.where(target > 1, stirling, 0)  # the target's gradient is NaN below 0, as torch's is
    return reduce_loss(loss, reduction)


def gaussian_nll_loss(
    input: jax.Array,
    target: jax.Array,
    var: jax.Array | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> jax.Array:
    """Negative log likelihood of a normal value; the variance is clamped at `eps` without a gradient through the clamp.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.gaussian_nll_loss.html
    """
    variance = jnp.asarray(var, input.dtype)
    if variance.ndim and variance.shape != input.shape and input.shape[:-1] == variance.shape:
        variance = variance[..., None]
    variance = variance + jax.lax.stop_gradient(jnp.where(variance < eps, eps - variance, 0))
    loss = 0.5 * (jnp.log(variance) + jnp.square(input - target) / variance)
    return reduce_loss(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def linear_cross_entropy(
    input: jax.Array,
    linear_weight: jax.Array,
    target: jax.Array,
    *,
    linear_bias: jax.Array | None = None,
    weight: jax.Array | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
) -> jax.Array:
    """Cross entropy of a linear projection, `input` (N, in) or (in,) by `linear_weight` (C, …, in).

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.linear_cross_entropy.html
    """
    logits = jnp.einsum("...i,ci->...c", input, linear_weight.reshape(-1, linear_weight.shape[-1]))
    logits = logits if linear_bias is None else logits + linear_bias.reshape(-1)
    logits = logits.reshape(*logits.shape[:-1], *linear_weight.shape[:-1])
    skipped = -100 if ignore_index is None else ignore_index
    return cross_entropy(logits, target, weight, ignore_index=skipped, reduction=reduction, label_smoothing=label_smoothing)
