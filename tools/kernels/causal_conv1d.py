"""Causal depthwise convolution over time, as state space models have it. The TPU kernel is ours: none is maintained."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from migrate_agent.tools.kernels.catalogue import Array, Case, Kernel
from migrate_agent.tools.kernels.common import float_reason, run_kernel, with_gradient
from migrate_agent.tools.vendored.numeric import promote_half


def causal_depthwise_conv(
    x: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None = None,
    initial: jax.Array | None = None,
    *,
    activation: str | None = None,
    implementation: str = "xla",
) -> jax.Array:
    """y[:, :, t] = Σₖ weight[:, k] x[:, :, t - W + 1 + k] + bias, then SiLU: (B, D, T), (D, W), (D,) → (B, D, T), in `x`'s dtype.

    `initial` (B, D, W - 1) are the values before the first; zero where it is left out. `activation` is `silu`, `swish` or None.
    Computed in float32 and rounded once. Float32 and bfloat16 have a TPU kernel for W up to 8.
    https://github.com/Dao-AILab/causal-conv1d
    """
    if activation not in (None, "silu", "swish"):
        raise ValueError(f"causal_depthwise_conv: activation={activation!r} is none of None, 'silu', 'swish'")
    taps = weight.shape[1]
    before = jnp.zeros((x.shape[0], x.shape[1], taps - 1), x.dtype) if initial is None else initial.astype(x.dtype)
    longer = jnp.concatenate([before, x], axis=2) if initial is not None else x
    reason = float_reason(x) or ("" if taps <= 8 else f"{taps} taps are more than 8")
    y = run_kernel("causal_depthwise_conv", implementation, reason, conv_on_tpu, conv_reference, longer, promote_half(weight))
    y = y[:, :, taps - 1 :] if initial is not None else y
    y = y if bias is None else y + promote_half(bias)[:, None]
    return (y if activation is None else jax.nn.silu(y)).astype(x.dtype)


def conv_reference(x: jax.Array, weight: jax.Array) -> jax.Array:
    """The bare sum in plain JAX: (B, D, T), (D, W) → (B, D, T), in at least float32."""
    wide = promote_half(x)
    taps, length = weight.shape[1], x.shape[2]
    padded = jnp.pad(wide, ((0, 0), (0, 0), (taps - 1, 0)))
    return sum((padded[:, :, k : k + length] * weight[:, k, None] for k in range(taps)), jnp.zeros_like(wide))


def conv_on_tpu(x: jax.Array, weight: jax.Array) -> jax.Array:
    """The same by the TPU kernel, channels last."""
    return conv_over_time(x.swapaxes(1, 2), weight.T).swapaxes(1, 2)


def conv_forward(x: jax.Array, weight: jax.Array) -> jax.Array:
    """(B, T, D), float32 (W, D) → float32 (B, T, D), over blocks of time in order; the last eight steps of a block go on to the next."""
    batch, length, width = x.shape
    taps = weight.shape[0]
    wide, tall = min(width, 512), length if length <= 256 else 256

    def body(x_ref: Any, weight_ref: Any, y_ref: Any, tail_ref: Any) -> None:
        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            tail_ref[...] = jnp.zeros_like(tail_ref)

        known = jnp.concatenate([tail_ref[...], x_ref[0].astype(jnp.float32)], axis=0)
        y = jnp.zeros((tall, known.shape[1]), jnp.float32)
        for k in range(taps):
            start = 8 - (taps - 1) + k
            y += known[start : start + tall] * weight_ref[k : k + 1]
        y_ref[0] = y
        tail_ref[...] = known[tall:]

    return pl.pallas_call(
        body,
        grid=(batch, pl.cdiv(width, wide), pl.cdiv(length, tall)),
        in_specs=[
            pl.BlockSpec((1, tall, wide), lambda b, d, t: (b, t, d)),
            pl.BlockSpec((taps, wide), lambda b, d, t: (0, d)),
        ],
        out_specs=pl.BlockSpec((1, tall, wide), lambda b, d, t: (b, t, d)),
        out_shape=jax.ShapeDtypeStruct(x.shape, jnp.float32),
        scratch_shapes=[pltpu.VMEM((8, wide), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )(x, weight)


def conv_backward(saved: tuple[jax.Array, jax.Array], grad: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The gradient of x is the same sum backwards in time; that of the few weights is plain JAX."""
    x, weight = saved
    dx = conv_forward(grad[:, ::-1], weight)[:, ::-1].astype(x.dtype)
    padded = jnp.pad(promote_half(x), ((0, 0), (weight.shape[0] - 1, 0), (0, 0)))
    return dx, jnp.stack([(padded[:, k : k + x.shape[1]] * grad).sum((0, 1)) for k in range(weight.shape[0])])


conv_over_time = with_gradient(conv_forward, lambda x, weight: (conv_forward(x, weight), (x, weight)), conv_backward)


SHAPES = (
    Case((Array((2, 128, 64)), Array((128, 4)), Array((128,)), None), {"activation": "silu"}),
    Case((Array((1, 40, 301)), Array((40, 3)), None, None)),
    Case((Array((2, 600, 9)), Array((600, 2)), None, Array((2, 600, 1)))),
    Case((Array((1, 5, 1)), Array((5, 4)), Array((5,)), Array((1, 5, 3)))),
    Case((Array((2, 3, 5)), Array((3, 4)), None, None), tiny=True),
)
KERNEL = Kernel(
    "causal_conv1d",
    causal_depthwise_conv,
    origin="ours: none is maintained",
    gradient="kernel; of the weights in plain JAX",
    shapes=SHAPES,
    bench=(Case((Array((8, 5120, 2048)), Array((5120, 4)), Array((5120,)), None), {"activation": "silu"}),),
)
