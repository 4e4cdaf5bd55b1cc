"""Parts of training steps with torch's semantics."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp


def clip_grad_norm(grads: Any, max_norm: Any) -> tuple[Any, jax.Array]:
    """Gradients scaled down to a norm over all of them, and the norm before (https://pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html)."""
    norm = jnp.sqrt(sum(jnp.sum(jnp.square(grad)) for grad in jax.tree.leaves(grads)))
    # `optax.clip_by_global_norm` leaves out the small number that torch adds.
    factor = jnp.minimum(max_norm / (norm + 1e-6), 1.0)
    return jax.tree.map(lambda grad: grad * factor.astype(grad.dtype), grads), norm


def learning_rate(optimizer: Any) -> float:
    """The rate of an optimizer whose rate is set from outside of the step."""
    return float(optimizer.opt_state.hyperparams["learning_rate"].get_value())


def set_learning_rate(optimizer: Any, rate: Any) -> None:
    """Set the rate of an optimizer made by `optax.inject_hyperparams`."""
    variable = optimizer.opt_state.hyperparams["learning_rate"]
    variable.set_value(jnp.asarray(rate, variable.get_value().dtype))
