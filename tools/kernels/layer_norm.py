"""Layer normalisation. The TPU kernel is ours: jax maintains one for GPUs only, and tokamax none for TPUs."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from migrate_agent.tools.kernels.catalogue import Array, Case, Kernel
from migrate_agent.tools.kernels.common import call_by_rows, float_reason, row_reason, rows_inside, run_kernel, with_gradient
from migrate_agent.tools.vendored.numeric import promote_half


def fused_layer_norm(
    x: jax.Array, weight: jax.Array | None = None, bias: jax.Array | None = None, *, eps: float = 1e-5, implementation: str = "xla"
) -> jax.Array:
    """(x - mean) / √(variance + eps) · weight + bias over the last axis: (…, D), (D,), (D,) → (…, D), in `x`'s dtype.

    The variance is the biased one; computed in float32 and rounded once. Float32 and bfloat16 have a TPU kernel.
    https://docs.pytorch.org/docs/stable/generated/torch.nn.LayerNorm.html
    """
    reason = float_reason(x) or row_reason(x.shape[-1])
    kernel, reference = partial(layer_norm_on_tpu, eps=eps), partial(layer_norm_reference, eps=eps)
    return run_kernel("fused_layer_norm", implementation, reason, kernel, reference, x, weight, bias)


def layer_norm_reference(x: jax.Array, weight: jax.Array | None, bias: jax.Array | None, eps: float) -> jax.Array:
    """The same in plain JAX."""
    wide = promote_half(x)
    centred = wide - jnp.mean(wide, axis=-1, keepdims=True)
    y = centred * jax.lax.rsqrt(jnp.mean(centred * centred, axis=-1, keepdims=True) + eps)
    y = y if weight is None else y * promote_half(weight)
    return (y if bias is None else y + promote_half(bias)).astype(x.dtype)


def layer_norm_on_tpu(x: jax.Array, weight: jax.Array | None, bias: jax.Array | None, eps: float) -> jax.Array:
    """The same by the TPU kernel."""
    width = x.shape[-1]
    scale = jnp.ones((1, width), jnp.float32) if weight is None else promote_half(weight).reshape(1, width)
    shift = jnp.zeros((1, width), jnp.float32) if bias is None else promote_half(bias).reshape(1, width)
    return layer_norm_rows(x.reshape(-1, width), scale, shift, eps).reshape(x.shape)


def layer_norm_forward(x: jax.Array, scale: jax.Array, shift: jax.Array, eps: float) -> jax.Array:
    """(rows, D), float32 (1, D), (1, D) → (rows, D)."""

    def body(x_ref: Any, scale_ref: Any, shift_ref: Any, y_ref: Any) -> None:
        y_ref[...] = (normalised_rows(x_ref[...], eps)[0] * scale_ref[...] + shift_ref[...]).astype(y_ref.dtype)

    return call_by_rows(body, [x, scale, shift], [(*x.shape, x.dtype)])[0]


def normalised_rows(x: jax.Array, eps: float) -> tuple[jax.Array, jax.Array]:
    """Rows with mean zero and variance one, and the inverse deviations, in float32."""
    wide = x.astype(jnp.float32)
    centred = wide - jnp.mean(wide, axis=1, keepdims=True)
    inverse = jax.lax.rsqrt(jnp.mean(centred * centred, axis=1, keepdims=True) + eps)
    return centred * inverse, inverse


def layer_norm_backward(eps: float, saved: tuple[jax.Array, jax.Array], grad: jax.Array) -> tuple[jax.Array, ...]:
    """The gradients of rows, scale and shift; the latter two are summed over the blocks of rows."""
    x, scale = saved
    rows, width = x.shape

    def body(x_ref: Any, grad_ref: Any, scale_ref: Any, dx_ref: Any, dscale_ref: Any, dshift_ref: Any) -> None:
        grad = grad_ref[...].astype(jnp.float32)
        normed, inverse = normalised_rows(x_ref[...], eps)
        scaled = grad * scale_ref[...]
        along = normed * jnp.mean(scaled * normed, axis=1, keepdims=True)
        dx_ref[...] = (inverse * (scaled - jnp.mean(scaled, axis=1, keepdims=True) - along)).astype(dx_ref.dtype)

        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            dscale_ref[...] = jnp.zeros_like(dscale_ref)
            dshift_ref[...] = jnp.zeros_like(dshift_ref)

        inside = rows_inside(grad.shape[0], rows)
        dscale_ref[...] += jnp.sum(jnp.where(inside, grad * normed, 0), axis=0, keepdims=True)
        dshift_ref[...] += jnp.sum(jnp.where(inside, grad, 0), axis=0, keepdims=True)

    sums = (1, width, jnp.float32)
    return tuple(call_by_rows(body, [x, grad, scale], [(rows, width, x.dtype), sums, sums], accumulates=True))


layer_norm_rows = with_gradient(
    layer_norm_forward,
    lambda x, scale, shift, eps: (layer_norm_forward(x, scale, shift, eps), (x, scale)),
    layer_norm_backward,
    static=(3,),
)


SHAPES = (
    Case((Array((2, 8, 128)), Array((128,)), Array((128,)))),
    Case((Array((3, 37, 96)), Array((96,)), None), {"eps": 1e-12}),
    Case((Array((1, 5)), Array((5,)), Array((5,)))),
    Case((Array((700, 40)), None, None)),
    Case((Array((5, 7, 3)), Array((3,), "float32"), Array((3,), "float32")), tiny=True),
)
KERNEL = Kernel(
    "layer_norm",
    fused_layer_norm,
    origin="ours: none is maintained for TPUs",
    gradient="kernel",
    shapes=SHAPES,
    bench=(Case((Array((8, 2048, 4096)), Array((4096,)), Array((4096,)))),),
)
