"""Rotary position embedding. The TPU kernel is ours: none is maintained."""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from migrate_agent.tools.kernels.catalogue import Array, Case, Kernel
from migrate_agent.tools.kernels.common import float_reason, row_block, run_kernel, with_gradient
from migrate_agent.tools.vendored.numeric import promote_half


def rotary_embedding(x: jax.Array, cos: jax.Array, sin: jax.Array, *, interleaved: bool = False, implementation: str = "xla") -> jax.Array:
    """Rotate the first 2R features of each head: (B, T, H, D), (T, R) or (B, T, R) twice → (B, T, H, D), in `x`'s dtype.

    Feature i turns with i + R, or with its neighbour where `interleaved`; features from 2R on stay. Computed in float32 and rounded once.
    Float32 and bfloat16 have a TPU kernel where the heads fill whole tiles of 128 lanes, or are few.
    https://arxiv.org/abs/2104.09864
    """
    if x.ndim != 4 or 2 * cos.shape[-1] > x.shape[-1] or cos.shape != sin.shape:
        raise ValueError(f"rotary_embedding: x {x.shape}, cos {cos.shape}, sin {sin.shape}")
    reason = float_reason(x) or ("" if heads_together(x.shape[2], x.shape[3]) else f"{x.shape[2]} heads of {x.shape[3]} fill no tiles")
    kernel, reference = partial(rotary_on_tpu, interleaved=interleaved), partial(rotary_reference, interleaved=interleaved)
    return run_kernel("rotary_embedding", implementation, reason, kernel, reference, x, cos, sin)


def rotary_reference(x: jax.Array, cos: jax.Array, sin: jax.Array, interleaved: bool) -> jax.Array:
    """The same in plain JAX."""
    turning, rest = jnp.split(x, [2 * cos.shape[-1]], axis=-1)
    cos, sin = (promote_half(angle)[..., None, :] for angle in (cos, sin))
    wide = promote_half(turning)
    first, second = (wide[..., ::2], wide[..., 1::2]) if interleaved else jnp.split(wide, 2, axis=-1)
    turned = (first * cos - second * sin, second * cos + first * sin)
    joined = jnp.stack(turned, axis=-1).reshape(turning.shape) if interleaved else jnp.concatenate(turned, axis=-1)
    return jnp.concatenate([joined.astype(x.dtype), rest], axis=-1)


def heads_together(heads: int, size: int) -> int:
    """How many heads one block holds: as many as fill whole tiles of 128 lanes, or all; 0 where that is too wide."""
    together = math.lcm(size, 128) // size
    together = together if heads % together == 0 else heads
    return together if together * size <= 1024 else 0


def partner_matrix(size: int, turning: int, interleaved: bool) -> np.ndarray:
    """(D, D): x @ it holds for each feature the one that it turns with, with its sign. A product with it is exact, and needs no lane shuffles."""
    matrix = np.zeros((size, size), np.float32)
    half = turning // 2
    for i in range(half):
        first, second = (2 * i, 2 * i + 1) if interleaved else (i, i + half)
        matrix[second, first], matrix[first, second] = -1, 1
    return matrix


def rotary_on_tpu(x: jax.Array, cos: jax.Array, sin: jax.Array, interleaved: bool) -> jax.Array:
    """The same by the TPU kernel."""
    return rotary_heads(x, cos, sin, interleaved)


def rotary_forward(x: jax.Array, cos: jax.Array, sin: jax.Array, interleaved: bool) -> jax.Array:
    """Blocks of positions and heads, over (B, T, H · D)."""
    batch, length, heads, size = x.shape
    together = heads_together(heads, size)
    width = together * size
    partners = jnp.asarray(np.kron(np.eye(together, dtype=np.float32), partner_matrix(size, 2 * cos.shape[-1], interleaved)))
    cosines = head_angles(cos, size, 1.0, interleaved, together)
    sines = head_angles(sin, size, 0.0, interleaved, together)
    block = row_block(length, width)

    def body(x_ref: Any, cos_ref: Any, sin_ref: Any, partners_ref: Any, y_ref: Any) -> None:
        x = x_ref[0].astype(jnp.float32)
        partner = jnp.dot(x, partners_ref[...], precision=jax.lax.Precision.HIGHEST, preferred_element_type=jnp.float32)
        y_ref[0] = (x * cos_ref[0] + partner * sin_ref[0]).astype(y_ref.dtype)

    angles = pl.BlockSpec((1, block, width), (lambda b, t, h: (b, t, 0)) if cosines.shape[0] > 1 else (lambda b, t, h: (0, t, 0)))
    rows = pl.BlockSpec((1, block, width), lambda b, t, h: (b, t, h))
    y = pl.pallas_call(
        body,
        grid=(batch, pl.cdiv(length, block), heads // together),
        in_specs=[rows, angles, angles, pl.BlockSpec((width, width), lambda b, t, h: (0, 0))],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct((batch, length, heads * size), x.dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",) * 3),
    )(x.reshape(batch, length, heads * size), cosines, sines, partners)
    return y.reshape(x.shape)


def head_angles(angle: jax.Array, size: int, rest: float, interleaved: bool, together: int) -> jax.Array:
    """(T, R) or (B, T, R) → float32 (1 or B, T, heads · D): one value for each feature, `rest` for those that stay."""
    wide = promote_half(angle if angle.ndim == 3 else angle[None])
    full = jnp.repeat(wide, 2, axis=-1) if interleaved else jnp.concatenate([wide, wide], axis=-1)
    stay = jnp.full((*full.shape[:-1], size - full.shape[-1]), rest, full.dtype)
    return jnp.tile(jnp.concatenate([full, stay], axis=-1), (1, 1, together))


def rotary_backward(interleaved: bool, saved: tuple[jax.Array, jax.Array, jax.Array], grad: jax.Array) -> tuple[jax.Array, ...]:
    """The gradient turns back. Those of the angles, which hardly anyone asks for, are plain JAX, and no code where unused."""
    x, cos, sin = saved
    pull = jax.vjp(lambda cos, sin: rotary_reference(x, cos, sin, interleaved), cos, sin)[1]
    return rotary_forward(grad, cos, -sin, interleaved), *pull(grad)


rotary_heads = with_gradient(
    rotary_forward,
    lambda x, cos, sin, interleaved: (rotary_forward(x, cos, sin, interleaved), (x, cos, sin)),
    rotary_backward,
    static=(3,),
)


SHAPES = (
    Case((Array((2, 16, 4, 64)), Array((16, 32), "float32"), Array((16, 32), "float32"))),
    Case((Array((2, 37, 2, 128)), Array((2, 37, 64), "float32"), Array((2, 37, 64), "float32")), {"interleaved": True}),
    Case((Array((1, 9, 3, 40)), Array((9, 10)), Array((9, 10)))),
    Case((Array((2, 5, 3, 6)), Array((5, 2), "float32"), Array((5, 2), "float32")), {"interleaved": True}, tiny=True),
)
KERNEL = Kernel(
    "rotary",
    rotary_embedding,
    origin="ours: none is maintained",
    gradient="kernel; of the angles in plain JAX",
    shapes=SHAPES,
    bench=(Case((Array((4, 4096, 32, 128)), Array((4096, 64), "float32"), Array((4096, 64), "float32"))),),
)
