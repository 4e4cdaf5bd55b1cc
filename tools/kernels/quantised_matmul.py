"""Products with int8 and fp8 weights. The TPU kernel is ours: jax maintains none for TPUs."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from migrate_agent.tools.kernels.catalogue import Array, Case, Kernel
from migrate_agent.tools.kernels.common import float_reason, pad_axis, round_up, run_kernel, with_gradient
from migrate_agent.tools.vendored.numeric import promote_half


def quantised_matmul(x: jax.Array, weight: jax.Array, scale: jax.Array, *, dynamic: bool = False, implementation: str = "xla") -> jax.Array:
    """x (scale · weight)ᵀ: (…, K), int8 or float8 (N, K), float32 (N,) → (…, N), in `x`'s dtype.

    With `dynamic` (int8 weights only) each row of `x` is itself rounded to int8 by its largest magnitude, and the product is one of integers,
    as LLM.int8() does without outliers. The gradient is that of the plain product: for `x` and `scale`, none for the weights.
    Float32 and bfloat16 have a TPU kernel.
    https://arxiv.org/abs/2208.07339
    """
    if weight.dtype != jnp.int8 and (dynamic or weight.dtype not in (jnp.float8_e4m3fn, jnp.float8_e5m2)):
        raise TypeError(f"quantised_matmul: weights are {weight.dtype}; int8 is wanted{'' if dynamic else ', or float8'}")
    kernel, reference = partial(quantised_on_tpu, dynamic=dynamic), partial(quantised_reference, dynamic=dynamic)
    return run_kernel("quantised_matmul", implementation, float_reason(x), kernel, reference, x, weight, scale)


def round_rows(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Rows as int8 and what one step of them is worth: (…, K) → int8 (…, K), (…, 1). A row of zeros stays zero."""
    wide = promote_half(x)
    step = jnp.max(jnp.abs(wide), axis=-1, keepdims=True) / 127
    return jnp.round(wide / jnp.where(step == 0, 1, step)).astype(jnp.int8), step


def quantised_reference(x: jax.Array, weight: jax.Array, scale: jax.Array, dynamic: bool) -> jax.Array:
    """The same in plain JAX."""

    def exact(x: jax.Array, scale: jax.Array) -> jax.Array:
        wide = promote_half(x)
        return (wide @ weight.astype(wide.dtype).T * scale).astype(x.dtype)

    if not dynamic:
        return exact(x, scale)
    rounded, step = round_rows(jax.lax.stop_gradient(x))
    product = jax.lax.dot_general(rounded, weight, (((x.ndim - 1,), (1,)), ((), ())), preferred_element_type=jnp.int32)
    value = (product.astype(step.dtype) * step * jax.lax.stop_gradient(scale)).astype(x.dtype)
    smooth = exact(x, scale)
    return value + (smooth - jax.lax.stop_gradient(smooth))


def quantised_on_tpu(x: jax.Array, weight: jax.Array, scale: jax.Array, dynamic: bool) -> jax.Array:
    """The same by the TPU kernel."""
    product = quantised_rows(x.reshape(-1, x.shape[-1]), weight, scale, dynamic)
    return product.reshape(*x.shape[:-1], weight.shape[0])


def quantised_forward(x: jax.Array, weight: jax.Array, scale: jax.Array, dynamic: bool) -> jax.Array:
    """(M, K), (N, K), (N,) → (M, N), over blocks of all three; what pads K is zero."""
    rows, width = x.shape[0], weight.shape[0]
    deep = min(1024, round_up(x.shape[1], 128))
    depth = round_up(x.shape[1], deep)
    tall, wide = min(rows, 256), min(width, 256)
    factors, step = (round_rows(x)) if dynamic else (x, jnp.ones((rows, 1), jnp.float32))
    kind = jnp.int32 if dynamic else jnp.float32

    def body(x_ref: Any, weight_ref: Any, step_ref: Any, scale_ref: Any, y_ref: Any, sum_ref: Any) -> None:
        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            sum_ref[...] = jnp.zeros_like(sum_ref)

        precision = jax.lax.Precision.HIGHEST if x_ref.dtype == jnp.float32 else None
        block = weight_ref[...] if dynamic else weight_ref[...].astype(jnp.float32).astype(x_ref.dtype)
        contract = (((1,), (1,)), ((), ()))
        sum_ref[...] += jax.lax.dot_general(x_ref[...], block, contract, precision=precision, preferred_element_type=kind)

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _() -> None:
            y_ref[...] = (sum_ref[...].astype(jnp.float32) * step_ref[...] * scale_ref[...]).astype(y_ref.dtype)

    return pl.pallas_call(
        body,
        grid=(pl.cdiv(rows, tall), pl.cdiv(width, wide), depth // deep),
        in_specs=[
            pl.BlockSpec((tall, deep), lambda i, j, k: (i, k)),
            pl.BlockSpec((wide, deep), lambda i, j, k: (j, k)),
            pl.BlockSpec((tall, 1), lambda i, j, k: (i, 0)),
            pl.BlockSpec((1, wide), lambda i, j, k: (0, j)),
        ],
        out_specs=pl.BlockSpec((tall, wide), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((rows, width), x.dtype),
        scratch_shapes=[pltpu.VMEM((tall, wide), kind)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )(pad_axis(factors, 1, depth), pad_axis(weight, 1, depth), step, scale[None])


def quantised_backward(dynamic: bool, saved: tuple[jax.Array, ...], grad: jax.Array) -> tuple[jax.Array, Any, jax.Array]:
    """The gradients of x and scale in plain JAX, as if nothing had been rounded."""
    x, weight, scale = saved
    pull = jax.vjp(lambda x, scale: quantised_reference(x, weight, scale, False), x, scale)[1]
    dx, dscale = pull(grad)
    none = np.zeros(weight.shape, jax.dtypes.float0) if weight.dtype == jnp.int8 else jnp.zeros_like(weight)
    return dx, none, dscale


quantised_rows = with_gradient(
    quantised_forward,
    lambda x, weight, scale, dynamic: (quantised_forward(x, weight, scale, dynamic), (x, weight, scale)),
    quantised_backward,
    static=(3,),
)


SHAPES = (
    Case((Array((2, 16, 256)), Array((128, 256), "int8"), Array((128,), "positive"))),
    Case((Array((2, 16, 256)), Array((128, 256), "float8"), Array((128,), "positive"))),
    Case((Array((37, 200)), Array((300, 200), "int8"), Array((300,), "positive")), {"dynamic": True}),
    Case((Array((1, 33)), Array((5, 33), "float8"), Array((5,), "positive"))),
    Case((Array((300, 1100)), Array((17, 1100), "int8"), Array((17,), "positive"))),
    Case((Array((3, 40)), Array((5, 40), "int8"), Array((5,), "positive")), {"dynamic": True}, tiny=True),
)
KERNEL = Kernel(
    "quantised_matmul",
    quantised_matmul,
    origin="ours: none is maintained for TPUs",
    gradient="plain JAX, straight through the rounding",
    shapes=SHAPES,
    bench=(
        Case((Array((16, 4096)), Array((14336, 4096), "int8"), Array((14336,), "positive"))),
        Case((Array((8192, 4096)), Array((14336, 4096), "int8"), Array((14336,), "positive")), {"dynamic": True}),
    ),
)
