"""Grouped matrix product for mixtures of experts. The TPU kernel is jax's own megablox `gmm`, gradient included."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.megablox import gmm as megablox_gmm

from migrate_agent.tools.kernels.catalogue import Array, Case, Kernel
from migrate_agent.tools.kernels.common import float_reason, pad_axis, round_up, run_kernel


def grouped_matmul(x: jax.Array, weight: jax.Array, group_sizes: jax.Array, *, implementation: str = "xla") -> jax.Array:
    """The first `group_sizes[0]` rows times `weight[0]`, the next times `weight[1]`, …: (M, K), (E, K, N), int32 (E,) → (M, N), `x`'s dtype.

    Rows past the sum of the sizes become zero. Float32 and bfloat16 have a TPU kernel; sizes that are no multiples of 128 are padded for it.
    https://docs.jax.dev/en/latest/_autosummary/jax.lax.ragged_dot.html
    """
    reason = float_reason(x, weight) or ("" if x.dtype == weight.dtype else f"{x.dtype} rows, {weight.dtype} weights")
    return run_kernel("grouped_matmul", implementation, reason, gmm_on_tpu, grouped_reference, x, weight, group_sizes)


def grouped_reference(x: jax.Array, weight: jax.Array, group_sizes: jax.Array) -> jax.Array:
    """The same in plain JAX."""
    return jax.lax.ragged_dot(x, weight, group_sizes)


def gmm_on_tpu(x: jax.Array, weight: jax.Array, group_sizes: jax.Array) -> jax.Array:
    """The same by megablox, which wants whole tiles, and leaves rows of no group undefined, in the gradient too."""
    (rows, depth), width = x.shape, weight.shape[2]
    tiles = tuple(min(512, round_up(n, 128)) for n in (rows, depth, width))
    tall, deep, wide = (round_up(n, tile) for n, tile in zip((rows, depth, width), tiles, strict=True))
    inside = jnp.arange(rows)[:, None] < group_sizes.sum()
    rows_in = pad_axis(pad_axis(jnp.where(inside, x, 0), 1, deep), 0, tall)
    weights = pad_axis(pad_axis(weight, 2, wide), 1, deep)
    product = partial(megablox_gmm, preferred_element_type=x.dtype, tiling=tiles)(rows_in, weights, group_sizes.astype(jnp.int32))
    return jnp.where(inside, product[:rows, :width], 0)


SHAPES = (
    Case((Array((256, 128)), Array((4, 128, 128), scale=0.1), Array((4,), "partition", 256))),
    Case((Array((200, 72)), Array((5, 72, 40), scale=0.1), Array((5,), "partition", 170))),
    Case((Array((3, 8)), Array((2, 8, 5)), Array((2,), "partition", 3)), tiny=True),
)
KERNEL = Kernel(
    "grouped_matmul",
    grouped_matmul,
    origin="jax.experimental.pallas.ops.tpu.megablox.gmm",
    gradient="kernel",
    shapes=SHAPES,
    bench=(Case((Array((16384, 4096)), Array((8, 4096, 14336), scale=0.02), Array((8,), "partition", 16384))),),
)
