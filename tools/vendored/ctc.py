"""Connectionist temporal classification."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def ctc_loss(
    log_probs: jax.Array,
    targets: jax.Array,
    input_lengths: jax.Array | Sequence[int],
    target_lengths: jax.Array | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> jax.Array:
    """Minus the log-probability of `targets` (N, S), or concatenated (Σ lengths,), under `log_probs` (T, N, C) or (T, C).

    The mean divides each loss by its target's length. The gradient is PyTorch's: that with respect to the logits of `log_probs`.
    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.ctc_loss.html
    """
    if log_probs.ndim == 2:
        steps, size = (jnp.reshape(jnp.asarray(length), (1,)) for length in (input_lengths, target_lengths))
        loss = ctc_loss(log_probs[:, None], jnp.atleast_2d(targets), steps, size, blank, reduction, zero_infinity)
        return loss[0] if reduction == "none" else loss
    steps, sizes = jnp.asarray(input_lengths), jnp.asarray(target_lengths)
    padded = targets if targets.ndim == 2 else split_targets(targets, sizes, len(log_probs))
    loss = -jax.vmap(path_log_probability, (1, 0, 0, 0, None))(log_probs, padded, steps, sizes, blank)
    loss = loss + normalisation_gradient(log_probs, steps)
    if zero_infinity:
        loss = jnp.where(jnp.isinf(loss), 0, loss)
    if reduction == "mean":
        return (loss / jnp.maximum(sizes, 1)).mean().astype(log_probs.dtype)
    return loss.sum() if reduction == "sum" else loss


def split_targets(targets: jax.Array, sizes: jax.Array, steps: int) -> jax.Array:
    """Concatenated targets as rows (N, T), padded with whatever follows; no target that fits is longer than the input."""
    start = jnp.cumsum(sizes) - sizes
    return jnp.take(targets, start[:, None] + np.arange(steps), mode="clip")


def normalisation_gradient(log_probs: jax.Array, steps: jax.Array) -> jax.Array:
    """Zero (N,), with gradient exp(log_probs) where the input is not over: what turns the gradient into that of the logits."""
    running = (jnp.arange(log_probs.shape[0])[:, None] < steps)[..., None]
    share = jnp.where(running, jnp.exp(log_probs), 0)
    return (share - lax.stop_gradient(share)).sum((0, 2))


def path_log_probability(log_probs: jax.Array, target: jax.Array, steps: jax.Array, size: jax.Array, blank: int) -> jax.Array:
    """The log of the summed probability of all alignments, for one sample: (T, C), (S,), the used lengths → ()."""
    labels = jnp.full(2 * target.shape[0] + 1, blank).at[1::2].set(target)
    may_skip = (labels != blank) & (labels != jnp.roll(labels, 2)) & (jnp.arange(labels.size) >= 2)
    lowest = jnp.asarray(-1e30, log_probs.dtype)
    emissions = jnp.maximum(log_probs[:, labels], lowest)
    state = jnp.arange(labels.size)

    def advance(alpha: jax.Array, inputs: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        time, emission = inputs
        one = jnp.where(state >= 1, jnp.roll(alpha, 1), lowest)
        two = jnp.where(may_skip, jnp.roll(alpha, 2), lowest)
        new = jax.nn.logsumexp(jnp.stack([alpha, one, two]), axis=0) + emission
        return jnp.where(time < steps, new, alpha), None

    start = jnp.where((state == 0) | ((state == 1) & (size > 0)), emissions[0], lowest)
    alpha, _ = lax.scan(advance, start, (jnp.arange(1, len(log_probs)), emissions[1:]))
    last = jnp.where((state == 2 * size) | ((state == 2 * size - 1) & (size > 0)), alpha, lowest)
    total = jax.nn.logsumexp(last)
    return jnp.where(total < lowest / 2, -jnp.inf, total)
