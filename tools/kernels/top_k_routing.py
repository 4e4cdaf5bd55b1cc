"""Top-k routing of tokens to experts. The TPU kernel is ours: none is maintained."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from migrate_agent.tools.kernels.catalogue import Array, Case, Kernel
from migrate_agent.tools.kernels.common import call_by_rows, float_reason, row_reason, run_kernel, with_gradient
from migrate_agent.tools.vendored.numeric import promote_half


def route_top_k(logits: jax.Array, k: int, *, renormalise: bool = False, implementation: str = "xla") -> tuple[jax.Array, jax.Array]:
    """The `k` most probable experts of each token: (…, E) → weights (…, k) in at least float32, indices int32 (…, k).

    Weights are the softmax over all experts, largest first, the lower index first among equals; `renormalise` makes those chosen sum to one
    (which equals a softmax over the chosen logits). Float32 and bfloat16 have a TPU kernel.
    https://arxiv.org/abs/1701.06538
    """
    if not 0 < k <= logits.shape[-1]:
        raise ValueError(f"route_top_k: k={k} of {logits.shape[-1]} experts")
    reason = float_reason(logits) or row_reason(logits.shape[-1]) or ("" if k <= 32 else "the TPU kernel takes k up to 32")
    kernel, reference = partial(routing_on_tpu, k=k, renormalise=renormalise), partial(routing_reference, k=k, renormalise=renormalise)
    found: tuple[jax.Array, jax.Array] = run_kernel("route_top_k", implementation, reason, kernel, reference, logits)
    return found


def routing_reference(logits: jax.Array, k: int, renormalise: bool) -> tuple[jax.Array, jax.Array]:
    """The same in plain JAX."""
    weights, chosen = jax.lax.top_k(jax.nn.softmax(promote_half(logits), axis=-1), k)
    return weights / weights.sum(-1, keepdims=True) if renormalise else weights, chosen


def routing_on_tpu(logits: jax.Array, k: int, renormalise: bool) -> tuple[jax.Array, jax.Array]:
    """The same by the TPU kernel."""
    weights, chosen = routing_rows(logits.reshape(-1, logits.shape[-1]), k, renormalise)
    return weights.reshape(*logits.shape[:-1], k), chosen.reshape(*logits.shape[:-1], k)


def routing_forward(logits: jax.Array, k: int, renormalise: bool) -> tuple[jax.Array, jax.Array]:
    """(rows, E) → float32 (rows, k), int32 (rows, k): k times the largest that is left."""

    def body(logits_ref: Any, weights_ref: Any, chosen_ref: Any) -> None:
        scores = logits_ref[...].astype(jnp.float32)
        left = jnp.exp(scores - jnp.max(scores, axis=1, keepdims=True))
        left = left / jnp.sum(left, axis=1, keepdims=True)
        lane = jax.lax.broadcasted_iota(jnp.int32, left.shape, 1)
        column = jax.lax.broadcasted_iota(jnp.int32, (left.shape[0], k), 1)
        weights, chosen = jnp.zeros((left.shape[0], k), jnp.float32), jnp.zeros((left.shape[0], k), jnp.int32)
        for i in range(k):
            top = jnp.max(left, axis=1, keepdims=True)
            index = jnp.min(jnp.where(left == top, lane, left.shape[1]), axis=1, keepdims=True)
            weights, chosen = jnp.where(column == i, top, weights), jnp.where(column == i, index, chosen)
            left = jnp.where(lane == index, -1.0, left)
        weights_ref[...] = weights / jnp.sum(weights, axis=1, keepdims=True) if renormalise else weights
        chosen_ref[...] = chosen

    rows = logits.shape[0]
    weights, chosen = call_by_rows(body, [logits], [(rows, k, jnp.float32), (rows, k, jnp.int32)])
    return weights, chosen


def routing_backward(k: int, renormalise: bool, saved: tuple[jax.Array, jax.Array], grads: tuple[jax.Array, Any]) -> tuple[jax.Array]:
    """The gradient of the logits in plain JAX: k numbers a row are scattered."""
    logits, chosen = saved

    def weigh(logits: jax.Array) -> jax.Array:
        weights = jnp.take_along_axis(jax.nn.softmax(promote_half(logits), axis=-1), chosen, axis=-1)
        return weights / weights.sum(-1, keepdims=True) if renormalise else weights

    (dlogits,) = jax.vjp(weigh, logits)[1](grads[0])
    return (dlogits,)


def routing_saving(logits: jax.Array, k: int, renormalise: bool) -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]:
    """The result, and what the gradient needs."""
    weights, chosen = routing_forward(logits, k, renormalise)
    return (weights, chosen), (logits, chosen)


routing_rows = with_gradient(routing_forward, routing_saving, routing_backward, static=(1, 2))


SHAPES = (
    Case((Array((4, 32, 8)),), {"k": 2, "renormalise": True}),
    Case((Array((700, 60)),), {"k": 6}),
    Case((Array((1, 3)),), {"k": 3}),
    Case((Array((33, 256)),), {"k": 8, "renormalise": True}),
    Case((Array((13, 5)),), {"k": 2}, tiny=True),
)
KERNEL = Kernel(
    "top_k_routing",
    route_top_k,
    origin="ours: none is maintained",
    gradient="plain JAX: k numbers a row",
    shapes=SHAPES,
    bench=(Case((Array((16384, 256)),), {"k": 8, "renormalise": True}),),
)
