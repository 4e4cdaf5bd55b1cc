"""Scaled and masked softmax. The TPU kernel is ours: jax maintains one for GPUs only."""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from migrate_agent.tools.kernels.catalogue import Array, Case, Kernel
from migrate_agent.tools.kernels.common import call_by_rows, float_reason, row_block, row_reason, run_kernel, with_gradient
from migrate_agent.tools.vendored.numeric import promote_half


def fused_softmax(
    x: jax.Array, mask: jax.Array | None = None, *, scale: float = 1.0, causal: bool = False, implementation: str = "xla"
) -> jax.Array:
    """softmax(scale · x) over the last axis, where `mask` (bool, broadcasts to `x`) is True: (…, T, S) → (…, T, S), in `x`'s dtype.

    `causal` masks from the upper left corner. A row that is masked out entirely becomes zero. Float32 and bfloat16 have a TPU kernel.
    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softmax.html
    """
    reason = float_reason(x) or row_reason(x.shape[-1])
    kernel, reference = partial(softmax_on_tpu, scale=scale, causal=causal), partial(softmax_reference, scale=scale, causal=causal)
    return run_kernel("fused_softmax", implementation, reason, kernel, reference, x, mask)


def softmax_reference(x: jax.Array, mask: jax.Array | None, scale: float, causal: bool) -> jax.Array:
    """The same in plain JAX."""
    allowed = jnp.ones(x.shape, bool) if mask is None else jnp.broadcast_to(mask, x.shape)
    if causal:
        allowed &= jnp.tril(jnp.ones(x.shape[-2:], bool))
    scores = jnp.where(allowed, promote_half(x) * scale, -jnp.inf)
    top = jnp.max(scores, axis=-1, keepdims=True)
    weights = jnp.where(allowed, jnp.exp(jnp.where(allowed, scores - jnp.where(top == -jnp.inf, 0, top), 0)), 0)
    total = jnp.sum(weights, axis=-1, keepdims=True)
    return (weights / jnp.where(total == 0, 1, total)).astype(x.dtype)


def softmax_on_tpu(x: jax.Array, mask: jax.Array | None, scale: float, causal: bool) -> jax.Array:
    """The same by the TPU kernel."""
    width, length = x.shape[-1], x.shape[-2] if x.ndim > 1 else 1
    allowed = None if mask is None else jnp.broadcast_to(mask, x.shape).astype(jnp.int8).reshape(-1, width)
    return softmax_rows(x.reshape(-1, width), allowed, scale, length if causal else 0).reshape(x.shape)


def softmax_forward(x: jax.Array, mask: jax.Array | None, scale: float, length: int) -> jax.Array:
    """(rows, S), int8 (rows, S) → (rows, S); with a `length` row i sees the first i % length + 1 columns."""
    rows, width = x.shape
    block = row_block(rows, width)

    def body(x_ref: Any, *refs: Any) -> None:
        scores, y_ref = x_ref[...].astype(jnp.float32) * scale, refs[-1]
        if len(refs) > 1:
            scores = jnp.where(refs[0][...].astype(jnp.float32) > 0, scores, -jnp.inf)
        if length:
            row = pl.program_id(0) * block + jax.lax.broadcasted_iota(jnp.int32, scores.shape, 0)
            scores = jnp.where(jax.lax.broadcasted_iota(jnp.int32, scores.shape, 1) <= row % length, scores, -jnp.inf)
        top = jnp.max(scores, axis=1, keepdims=True)
        weights = jnp.exp(scores - jnp.where(top == -jnp.inf, 0, top))
        total = jnp.sum(weights, axis=1, keepdims=True)
        y_ref[...] = (weights / jnp.where(total == 0, 1, total)).astype(y_ref.dtype)

    return call_by_rows(body, [x] if mask is None else [x, mask], [(rows, width, x.dtype)])[0]


def softmax_backward(scale: float, length: int, y: jax.Array, grad: jax.Array) -> tuple[jax.Array, None]:
    """scale · y · (grad - Σ y grad); a masked weight is zero, and so is its gradient."""

    def body(y_ref: Any, grad_ref: Any, dx_ref: Any) -> None:
        y, grad = y_ref[...].astype(jnp.float32), grad_ref[...].astype(jnp.float32)
        dx_ref[...] = (scale * y * (grad - jnp.sum(y * grad, axis=1, keepdims=True))).astype(dx_ref.dtype)

    return call_by_rows(body, [y, grad], [(*y.shape, y.dtype)])[0], None


softmax_rows = with_gradient(
    softmax_forward,
    lambda x, mask, scale, length: (softmax_forward(x, mask, scale, length),) * 2,
    softmax_backward,
    static=(2, 3),
)


SHAPES = (
    Case((Array((2, 4, 32, 128)), None), {"causal": True}),
    Case((Array((3, 37, 45)), Array((37, 45), "bool")), {"scale": 0.125}),
    Case((Array((2, 3, 20, 20)), Array((2, 1, 20, 20), "bool")), {"scale": 1 / math.sqrt(3), "causal": True}),
    Case((Array((7,)), None)),
    Case((Array((1000, 33)), None)),
    Case((Array((2, 5, 6)), Array((2, 5, 6), "bool")), {"causal": True}, tiny=True),
)
KERNEL = Kernel(
    "softmax",
    fused_softmax,
    origin="ours: none is maintained for TPUs",
    gradient="kernel",
    shapes=SHAPES,
    bench=(Case((Array((4, 16, 2048, 2048)), None), {"causal": True}),),
)
