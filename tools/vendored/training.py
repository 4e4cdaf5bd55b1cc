"""Parts of training steps with torch's semantics."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx


def clip_grad_norm(grads: Any, max_norm: Any, norm_type: float = 2.0) -> tuple[Any, jax.Array]:
    """Gradients scaled down to a norm over all of them, and the norm before (https://pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html)."""
    norm = total_norm(grads, norm_type)
    # `optax.clip_by_global_norm` leaves out the small number that torch adds.
    factor = jnp.minimum(max_norm / (norm + 1e-6), 1.0)
    return jax.tree.map(lambda grad: grad * factor.astype(grad.dtype), grads), norm


def total_norm(grads: Any, norm_type: float = 2.0) -> jax.Array:
    """The norm of all gradients as one vector, float ()."""
    sizes = [jnp.abs(grad) for grad in jax.tree.leaves(grads)]
    if norm_type == float("inf"):
        return jnp.max(jnp.stack([jnp.max(size) for size in sizes]))
    if norm_type == 2:
        return jnp.sqrt(sum(jnp.sum(jnp.square(size)) for size in sizes))
    return sum(jnp.sum(size**norm_type) for size in sizes) ** (1 / norm_type)


def clip_grad_value(grads: Any, clip_value: Any) -> Any:
    """Gradients whose elements lie within ±`clip_value` (https://pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_value_.html)."""
    return jax.tree.map(lambda grad: jnp.clip(grad, -clip_value, clip_value), grads)


def zero_gradients(model: nnx.Module) -> nnx.State[Any, Any]:
    """Zeros in the shapes of a module's parameters, to which the gradients of several batches are added."""
    return jax.tree.map(jnp.zeros_like, nnx.state(model, nnx.Param))
