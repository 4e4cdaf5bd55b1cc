"""Functional normalisations that also move the running statistics that they are given, as PyTorch's do in training."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

from migrate_agent.tools.vendored.norm import batch_norm, instance_norm
from migrate_agent.tools.vendored.numeric import promote_half, value_of


def move_statistics(
    mean: nnx.Variable[jax.Array], var: nnx.Variable[jax.Array], batch_mean: jax.Array, batch_var: jax.Array, momentum: float
) -> None:
    """`(1 - momentum) * running + momentum * batch`, in place."""
    for running, batch in ((mean, batch_mean), (var, batch_var)):
        new = (1 - momentum) * running[...] + momentum * jax.lax.stop_gradient(batch)
        running[...] = new.astype(running[...].dtype)


def tracked_batch_norm(
    input: jax.Array,
    running_mean: nnx.Variable[jax.Array] | None,
    running_var: nnx.Variable[jax.Array] | None,
    weight: jax.Array | None = None,
    bias: jax.Array | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> jax.Array:
    """`batch_norm`; in training it moves the running statistics (the variance without bias), where there are any, by those of the batch.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.batch_norm.html
    """
    result = batch_norm(input, value_of(running_mean), value_of(running_var), weight, bias, training, momentum, eps)
    if training and running_mean is not None and running_var is not None:
        x, axes = promote_half(input), (0, *range(2, input.ndim))
        move_statistics(running_mean, running_var, x.mean(axes), x.var(axes, ddof=1), momentum)
    return result


def tracked_instance_norm(
    input: jax.Array,
    running_mean: nnx.Variable[jax.Array] | None,
    running_var: nnx.Variable[jax.Array] | None,
    weight: jax.Array | None = None,
    bias: jax.Array | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> jax.Array:
    """`instance_norm`; with the input's statistics it moves the running ones, where there are any, by their mean over the batch.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.instance_norm.html
    """
    result = instance_norm(input, value_of(running_mean), value_of(running_var), weight, bias, use_input_stats, momentum, eps)
    if use_input_stats and running_mean is not None and running_var is not None:
        x, axes = promote_half(input), tuple(range(2, input.ndim))
        means, variances = jnp.mean(x, axes), jnp.var(x, axes, ddof=1)
        move_statistics(running_mean, running_var, means.mean(0), variances.mean(0), momentum)
    return result
