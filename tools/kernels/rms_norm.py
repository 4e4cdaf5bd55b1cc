"""Root mean square normalisation. The TPU kernel is ours: jax maintains one for GPUs only, and tokamax none for TPUs."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from migrate_agent.tools.kernels.catalogue import Array, Case, Kernel
from migrate_agent.tools.kernels.common import call_by_rows, float_reason, row_reason, rows_inside, run_kernel, with_gradient
from migrate_agent.tools.vendored.numeric import promote_half


def fused_rms_norm(
    x: jax.Array, weight: jax.Array | None = None, *, eps: float = 1e-6, offset: float = 0.0, implementation: str = "xla"
) -> jax.Array:
    """x / √(mean x² + eps) · (offset + weight) over the last axis: (…, D), (D,) → (…, D), in `x`'s dtype.

    Computed in float32 and rounded once, as fused kernels do. Gemma's has `offset=1`. Float32 and bfloat16 have a TPU kernel.
    https://arxiv.org/abs/1910.07467
    """
    reason = float_reason(x) or row_reason(x.shape[-1])
    kernel, reference = partial(rms_norm_on_tpu, eps=eps, offset=offset), partial(rms_norm_reference, eps=eps, offset=offset)
    return run_kernel("fused_rms_norm", implementation, reason, kernel, reference, x, weight)


def rms_norm_reference(x: jax.Array, weight: jax.Array | None, eps: float, offset: float) -> jax.Array:
    """The same in plain JAX."""
    wide = promote_half(x)
    normed = wide * jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + eps)
    return (normed if weight is None else normed * (offset + promote_half(weight))).astype(x.dtype)


def rms_norm_on_tpu(x: jax.Array, weight: jax.Array | None, eps: float, offset: float) -> jax.Array:
    """The same by the TPU kernel."""
    width = x.shape[-1]
    scale = jnp.ones((1, width), jnp.float32) if weight is None else offset + promote_half(weight).reshape(1, width)
    return rms_norm_rows(x.reshape(-1, width), scale, eps).reshape(x.shape)


def rms_norm_forward(x: jax.Array, scale: jax.Array, eps: float) -> jax.Array:
    """(rows, D), float32 (1, D) → (rows, D)."""

    def body(x_ref: Any, scale_ref: Any, y_ref: Any) -> None:
        x = x_ref[...].astype(jnp.float32)
        y_ref[...] = (x * jax.lax.rsqrt(jnp.mean(x * x, axis=1, keepdims=True) + eps) * scale_ref[...]).astype(y_ref.dtype)

    return call_by_rows(body, [x, scale], [(*x.shape, x.dtype)])[0]


def rms_norm_backward(eps: float, saved: tuple[jax.Array, jax.Array], grad: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The gradients of rows and scale; the latter is summed over the blocks of rows."""
    x, scale = saved
    rows, width = x.shape

    def body(x_ref: Any, grad_ref: Any, scale_ref: Any, dx_ref: Any, dscale_ref: Any) -> None:
        x, grad = x_ref[...].astype(jnp.float32), grad_ref[...].astype(jnp.float32)
        inverse = jax.lax.rsqrt(jnp.mean(x * x, axis=1, keepdims=True) + eps)
        normed, scaled = x * inverse, grad * scale_ref[...]
        dx_ref[...] = (inverse * (scaled - normed * jnp.mean(scaled * normed, axis=1, keepdims=True))).astype(dx_ref.dtype)

        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            dscale_ref[...] = jnp.zeros_like(dscale_ref)

        dscale_ref[...] += jnp.sum(jnp.where(rows_inside(x.shape[0], rows), grad * normed, 0), axis=0, keepdims=True)

    dx, dscale = call_by_rows(body, [x, grad, scale], [(rows, width, x.dtype), (1, width, jnp.float32)], accumulates=True)
    return dx, dscale


rms_norm_rows = with_gradient(
    rms_norm_forward, lambda x, scale, eps: (rms_norm_forward(x, scale, eps), (x, scale)), rms_norm_backward, static=(2,)
)


SHAPES = (
    Case((Array((2, 8, 128)), Array((128,)))),
    Case((Array((3, 37, 96)), Array((96,))), {"eps": 1e-5, "offset": 1.0}),
    Case((Array((1, 5)), Array((5,)))),
    Case((Array((700, 40)), None), {"eps": 1e-5}),
    Case((Array((5, 7, 3)), Array((3,), "float32")), tiny=True),
)
KERNEL = Kernel(
    "rms_norm",
    fused_rms_norm,
    origin="ours: none is maintained for TPUs",
    gradient="kernel",
    shapes=SHAPES,
    bench=(Case((Array((8, 2048, 4096)), Array((4096,)))),),
)
