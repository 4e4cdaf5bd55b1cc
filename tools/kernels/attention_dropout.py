"""Attention with dropout, forward and gradient. Neither jax's attention kernels for TPU nor tokamax's drop weights, so this one is ours.

The mask is never in memory: each weight's random bits are computed where they are used, from its place in (B, H, T, S), as `jax.random.bernoulli`
computes them. So the kernel drops exactly what plain JAX drops with the same key.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from migrate_agent.tools.kernels.common import pad_axis, round_up, with_gradient
from migrate_agent.tools.vendored.numeric import promote_half

DROPOUT_VMEM = 48 << 20
DROPOUT_KEYS = 1 << 19
"""Numbers that the keys of one head may hold: these, the values and both gradients lie in VMEM, twice each, in float32."""
DROPOUT_SCORES = 1 << 17
"""Numbers in one block of scores."""


class DropoutForm(NamedTuple):
    """What a call is beside its arrays: lengths before padding, and options."""

    queries: int
    keys: int
    window: tuple[int, int]
    scale: float
    soft_cap: float
    dropout: float
    block: int


def dropout_reason(query: jax.Array, key: jax.Array, value: jax.Array, rng: jax.Array) -> str:
    """Why the kernel cannot take this call, or ""."""
    partitionable: Any = jax.threefry_partitionable
    if jnp.result_type(float) == jnp.float64 or not partitionable.value or jax.random.key_data(rng).shape != (2,):
        return "the TPU kernel draws as jax's default generator does in 32 bits"
    if query.shape[0] * query.shape[1] * query.shape[2] * key.shape[1] >= 1 << 32:
        return "the TPU kernel counts weights in 32 bits"
    widest = max(query.shape[-1], value.shape[-1])
    return "the keys are too long for VMEM" if round_up(key.shape[1], 128) * round_up(widest, 128) > DROPOUT_KEYS else ""


def attention_with_dropout(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    query_segments: jax.Array | None,
    key_segments: jax.Array | None,
    rng: jax.Array,
    *,
    window: tuple[int, int],
    scale: float,
    soft_cap: float,
    dropout: float,
) -> jax.Array:
    """(B, T, H, D), (B, S, K, D), (B, S, K, V) → (B, T, H, V). A block holds whole rows of scores: keys of one head fit in VMEM."""
    (batch, length, heads, _), keys = query.shape, key.shape[1]
    wide = round_up(keys, 128)
    block = min(max(DROPOUT_SCORES // wide // 16 * 16, 16), 128, round_up(length, 16))
    long = round_up(length, block)
    segments = [
        pad_axis(jnp.zeros((batch, n), jnp.int32) if x is None else x.astype(jnp.int32), 1, full, value=fill)
        for x, n, full, fill in ((query_segments, length, long, -1), (key_segments, keys, wide, -2))
    ]
    key, value = (jnp.repeat(x, heads // key.shape[2], axis=2) for x in (key, value))
    operands = [pad_axis(promote_half(x), 1, full).swapaxes(1, 2) for x, full in ((query, long), (key, wide), (value, wide))]
    seeds = jax.lax.bitcast_convert_type(jax.random.key_data(rng), jnp.int32)
    form = DropoutForm(length, keys, window, scale, soft_cap, dropout, block)
    y = drop_and_attend(form, seeds, segments[0][:, :, None], segments[1][:, None, :], *operands)
    return y.swapaxes(1, 2)[:, :length].astype(query.dtype)


def threefry(first: jax.Array, second: jax.Array, counts: jax.Array) -> jax.Array:
    """Inside a kernel: 32 random bits for each count below 2³², as `jax.random.bits` gives them. https://doi.org/10.1145/2063384.2063405"""
    keys = (first, second, first ^ second ^ jnp.int32(0x1BD11BDA))
    high, low = jnp.zeros_like(counts) + keys[0], counts + keys[1]
    for group in range(5):
        for turn in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            high = high + low
            low = jax.lax.shift_left(low, jnp.int32(turn)) | jax.lax.shift_right_logical(low, jnp.int32(32 - turn))
            low = low ^ high
        high, low = high + keys[(group + 1) % 3], low + keys[(group + 2) % 3] + jnp.int32(group + 1)
    return high ^ low


def kept_weights(form: DropoutForm, seeds: Any, rows: jax.Array, columns: jax.Array) -> jax.Array:
    """Inside a kernel: 1 / (1 - p) where a weight is kept, else 0."""
    head = pl.program_id(0) * pl.num_programs(1) + pl.program_id(1)
    bits = threefry(seeds[0], seeds[1], (head * form.queries + rows) * form.keys + columns)
    one_to_two = jax.lax.bitcast_convert_type(jax.lax.shift_right_logical(bits, jnp.int32(9)) | jnp.int32(0x3F800000), jnp.float32)
    return jnp.where(one_to_two - 1 < 1 - form.dropout, 1 / (1 - form.dropout), 0.0)


def dropout_weights(form: DropoutForm, refs: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Inside a kernel: a block's weights before dropout, what dropout multiplies them with, and the slope of the soft cap: (block, S) each."""
    seeds, query_segments, key_segments, query, key, *_ = refs
    scores = jax.lax.dot_general(
        query[...], key[...], (((1,), (1,)), ((), ())), precision=FULL_PRECISION, preferred_element_type=jnp.float32
    )
    scores, slope = scores * form.scale, jnp.ones_like(scores)
    if form.soft_cap:
        bent = jnp.tanh(scores / form.soft_cap)
        scores, slope = form.soft_cap * bent, 1 - bent * bent
    rows = pl.program_id(2) * form.block + jax.lax.broadcasted_iota(jnp.int32, scores.shape, 0)
    columns = jax.lax.broadcasted_iota(jnp.int32, scores.shape, 1)
    seen, distance = query_segments[...] == key_segments[...], columns - rows - (form.keys - form.queries)
    seen = seen & (distance >= -form.window[0]) if form.window[0] >= 0 else seen
    seen = seen & (distance <= form.window[1]) if form.window[1] >= 0 else seen
    top = jnp.max(jnp.where(seen, scores, UNSEEN_SCORE), axis=1, keepdims=True)
    powers = jnp.where(seen, jnp.exp(jnp.where(seen, scores - top, 0.0)), 0.0)
    total = jnp.sum(powers, axis=1, keepdims=True)
    return powers / jnp.where(total > 0, total, 1.0), kept_weights(form, seeds, rows, columns), slope


FULL_PRECISION = jax.lax.Precision.HIGHEST
UNSEEN_SCORE = -1e30


def attend_in_kernel(form: DropoutForm, *operands: jax.Array) -> jax.Array:
    """Seeds, segments (B, T, 1), (B, 1, S), and float32 (B, H, T, D), (B, H, S, D), (B, H, S, V) → (B, H, T, V)."""

    def body(*refs: Any) -> None:
        weights, kept, _ = dropout_weights(form, refs)
        refs[-1][...] = jax.lax.dot(weights * kept, refs[5][...], precision=FULL_PRECISION, preferred_element_type=jnp.float32)

    batch, heads, long, _ = operands[3].shape
    shape = (batch, heads, long, operands[5].shape[-1])
    specs = dropout_specs(form, operands)
    return pl.pallas_call(
        body,
        grid=(batch, heads, long // form.block),
        in_specs=specs,
        out_specs=pl.BlockSpec((None, None, form.block, shape[-1]), lambda b, h, i: (b, h, i, 0)),
        out_shape=jax.ShapeDtypeStruct(shape, jnp.float32),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",) * 3, vmem_limit_bytes=DROPOUT_VMEM),
    )(*operands)


def dropout_specs(form: DropoutForm, operands: tuple[jax.Array, ...]) -> list[pl.BlockSpec]:
    """Seeds as scalars; of the queries a block, of keys and values those of a head."""
    wide, depth, out = operands[4].shape[2], operands[3].shape[3], operands[5].shape[3]
    return [
        pl.BlockSpec(memory_space=pltpu.SMEM),
        pl.BlockSpec((None, form.block, 1), lambda b, h, i: (b, i, 0)),
        pl.BlockSpec((None, 1, wide), lambda b, h, i: (b, 0, 0)),
        pl.BlockSpec((None, None, form.block, depth), lambda b, h, i: (b, h, i, 0)),
        pl.BlockSpec((None, None, wide, depth), lambda b, h, i: (b, h, 0, 0)),
        pl.BlockSpec((None, None, wide, out), lambda b, h, i: (b, h, 0, 0)),
    ]


def dropout_forward(form: DropoutForm, *operands: jax.Array) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    """Nothing is kept but the operands: the backward pass computes the weights again."""
    return attend_in_kernel(form, *operands), operands


def dropout_backward(form: DropoutForm, operands: tuple[jax.Array, ...], grad: jax.Array) -> tuple[Any, ...]:
    """The gradients of query, key and value; those of the keys are summed over the blocks of queries."""

    def body(*refs: Any) -> None:
        query, key, value, dy, dquery, dkey, dvalue = refs[3:]
        weights, kept, slope = dropout_weights(form, refs)

        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            dkey[...], dvalue[...] = jnp.zeros_like(dkey), jnp.zeros_like(dvalue)

        dvalue[...] += jax.lax.dot((weights * kept).T, dy[...], precision=FULL_PRECISION, preferred_element_type=jnp.float32)
        dweights = kept * jax.lax.dot(dy[...], value[...].T, precision=FULL_PRECISION, preferred_element_type=jnp.float32)
        dscores = weights * (dweights - jnp.sum(dweights * weights, axis=1, keepdims=True)) * slope * form.scale
        dquery[...] = jax.lax.dot(dscores, key[...], precision=FULL_PRECISION, preferred_element_type=jnp.float32)
        dkey[...] += jax.lax.dot(dscores.T, query[...], precision=FULL_PRECISION, preferred_element_type=jnp.float32)

    specs = dropout_specs(form, operands)
    batch, heads, long, _ = operands[3].shape
    grads = pl.pallas_call(
        body,
        grid=(batch, heads, long // form.block),
        in_specs=[*specs, pl.BlockSpec((None, None, form.block, grad.shape[-1]), lambda b, h, i: (b, h, i, 0))],
        out_specs=specs[3:],
        out_shape=[jax.ShapeDtypeStruct(x.shape, jnp.float32) for x in operands[3:]],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary"), vmem_limit_bytes=DROPOUT_VMEM),
    )(*operands, grad)
    return (None, None, None, *grads)


drop_and_attend = with_gradient(attend_in_kernel, dropout_forward, dropout_backward, (0,))
