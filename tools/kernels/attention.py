"""Scaled dot-product attention without the scores in memory. The TPU kernels are jax's own: splash attention, and flash attention for biases
and masks that are arrays; that with dropout is ours (`attention_dropout.py`). On GPUs `jax.nn.dot_product_attention` would take cuDNN;
the reference is left to XLA there.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas.ops.tpu import flash_attention as tpu_flash
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as splash_masks

from migrate_agent.tools.kernels.attention_dropout import attention_with_dropout, dropout_reason
from migrate_agent.tools.kernels.catalogue import Array, Case, Kernel
from migrate_agent.tools.kernels.common import float_reason, pad_axis, round_up, run_kernel
from migrate_agent.tools.vendored.numeric import promote_half


def flash_attention(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    bias: jax.Array | None = None,
    mask: jax.Array | None = None,
    query_segments: jax.Array | None = None,
    key_segments: jax.Array | None = None,
    *,
    causal: bool = False,
    window: tuple[int, int] = (-1, -1),
    scale: float | None = None,
    soft_cap: float = 0.0,
    dropout: float = 0.0,
    rng: jax.Array | None = None,
    implementation: str = "xla",
) -> jax.Array:
    """softmax(scale · query keyᵀ + bias) value: (B, T, H, D), (B, S, K, D), (B, S, K, V) → (B, T, H, V); K divides H.

    `bias` is added and `mask` (bool, True = seen) applied; both broadcast to (B, H, T, S). Tokens see those of their own segment: int (B, T),
    (B, S), not negative. `causal` masks from the lower right corner, `window` limits how many keys before and after are seen (-1: all),
    as FlashAttention 2 does. `soft_cap` c makes scores c · tanh(score / c). A query that sees nothing gives zero. `dropout` needs the key `rng`.
    Float32 and bfloat16 have a TPU kernel, but neither dropout nor a soft cap has beside a bias or mask. The kernel drops what plain JAX drops.
    https://arxiv.org/abs/2307.08691
    """
    if dropout and rng is None:
        raise ValueError("flash_attention: dropout needs the key rng")
    window = (window[0], 0) if causal else window
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    extra = [bias, mask, query_segments, key_segments]
    reference = partial(attention_reference, window=window, scale=scale, soft_cap=soft_cap, dropout=dropout, rng=rng)
    kernel = partial(attention_on_tpu, window=window, scale=scale, soft_cap=soft_cap, dropout=dropout, rng=rng)
    reason = float_reason(query, key, value) or attention_reason(
        query, key, value, *extra, window=window, soft_cap=soft_cap, dropout=dropout, rng=rng
    )
    return run_kernel("flash_attention", implementation, reason, kernel, reference, query, key, value, *extra)


def attention_reason(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    bias: jax.Array | None,
    mask: jax.Array | None,
    query_segments: jax.Array | None,
    key_segments: jax.Array | None,
    *,
    window: tuple[int, int],
    soft_cap: float,
    dropout: float,
    rng: jax.Array | None = None,
) -> str:
    """Why the TPU kernels cannot take this call, or ""."""
    arrays = bias is not None or mask is not None
    if dropout and (arrays or rng is None):
        return "the TPU kernel for biases and masks has no dropout" if arrays else "the TPU kernel with dropout wants its key"
    if arrays and soft_cap:
        return "the TPU kernel for biases and masks has no soft cap"
    if arrays and value.shape[-1] != query.shape[-1]:
        return "the TPU kernel for biases and masks wants values as wide as queries"
    if (query_segments is None) != (key_segments is None):
        return "segments of queries and keys belong together"
    if dropout and rng is not None:
        return dropout_reason(query, key, value, rng)
    return "more queries than keys in a window leave some that see nothing" if window != (-1, -1) and query.shape[1] > key.shape[1] else ""


def seen_keys(
    shape: tuple[int, int],
    window: tuple[int, int],
    mask: jax.Array | None,
    query_segments: jax.Array | None,
    key_segments: jax.Array | None,
) -> jax.Array:
    """Which keys each query sees: bool, broadcasts to (B, H, T, S)."""
    length, keys = shape
    distance = jnp.arange(keys) - jnp.arange(length)[:, None] - (keys - length)
    seen = jnp.ones(shape, bool)[None, None]
    if window[0] >= 0:
        seen &= distance >= -window[0]
    if window[1] >= 0:
        seen &= distance <= window[1]
    if query_segments is not None and key_segments is not None:
        seen &= (query_segments[:, :, None] == key_segments[:, None, :])[:, None]
    return seen if mask is None else seen & mask


def attention_reference(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    bias: jax.Array | None,
    mask: jax.Array | None,
    query_segments: jax.Array | None,
    key_segments: jax.Array | None,
    *,
    window: tuple[int, int],
    scale: float,
    soft_cap: float,
    dropout: float,
    rng: jax.Array | None,
) -> jax.Array:
    """The same in plain JAX."""
    each = query.shape[2] // key.shape[2]
    key, value = (jnp.repeat(x, each, axis=2) for x in (key, value))
    scores = jnp.einsum("bthd,bshd->bhts", promote_half(query), promote_half(key)) * scale
    scores = soft_cap * jnp.tanh(scores / soft_cap) if soft_cap else scores
    scores = scores if bias is None else scores + promote_half(bias)
    seen = seen_keys((query.shape[1], key.shape[1]), window, mask, query_segments, key_segments)
    seen = jnp.broadcast_to(seen, scores.shape)
    some = seen.any(-1, keepdims=True)
    weights = jnp.where(some, jax.nn.softmax(jnp.where(seen, scores, jnp.where(some, -jnp.inf, 0)), axis=-1), 0)
    if dropout and rng is not None:
        weights = jnp.where(jax.random.bernoulli(rng, 1 - dropout, weights.shape), weights / (1 - dropout), 0)
    return jnp.einsum("bhts,bshd->bthd", weights, promote_half(value)).astype(query.dtype)


def attention_on_tpu(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    bias: jax.Array | None,
    mask: jax.Array | None,
    query_segments: jax.Array | None,
    key_segments: jax.Array | None,
    *,
    window: tuple[int, int],
    scale: float,
    soft_cap: float,
    dropout: float,
    rng: jax.Array | None,
) -> jax.Array:
    """The same by jax's kernels, and ours for dropout. Both lengths are filled up to whole blocks of 128, in a segment of their own."""
    if dropout and rng is not None:
        attend = partial(attention_with_dropout, window=window, scale=scale, soft_cap=soft_cap, dropout=dropout)
        return attend(query, key, value, query_segments, key_segments, rng)
    (batch, length, _, _), keys = query.shape, key.shape[1]
    long, wide = round_up(length, 128), round_up(keys, 128)
    segments = [
        pad_axis(jnp.zeros((batch, n), jnp.int32) if x is None else x.astype(jnp.int32), 1, full, value=-1)
        for x, n, full in ((query_segments, length, long), (key_segments, keys, wide))
    ]
    needed = query_segments is not None or long != length or wide != keys
    scaled = (promote_half(query) * scale).astype(query.dtype)
    heads_first = [pad_axis(x, 1, full).swapaxes(1, 2) for x, full in ((scaled, long), (key, wide), (value, wide))]
    seen = seen_keys((length, keys), window, mask, query_segments, key_segments)
    if bias is not None or mask is not None:
        y = biased_by_flash(heads_first, bias, seen, segments, (length, keys))
    else:
        y = windowed_by_splash(heads_first, window, soft_cap, segments if needed else None, keys - length)
    y = y.swapaxes(1, 2)[:, :length]
    some = jnp.broadcast_to(seen, (batch, query.shape[2], length, keys)).any(-1).swapaxes(1, 2)[..., None]
    return y if mask is None and query_segments is None else jnp.where(some, y, 0)


def largest_block(size: int, limit: int = 512) -> int:
    """The largest of 512, 256 and 128 that divides `size`, a multiple of 128."""
    return next(block for block in (512, 256, 128) if block <= limit and size % block == 0)


def windowed_by_splash(
    operands: list[jax.Array], window: tuple[int, int], soft_cap: float, segments: list[jax.Array] | None, offset: int
) -> jax.Array:
    """Splash attention, which skips blocks outside the window: (B, H, T, D), (B, K, S, D), (B, K, S, V) → (B, H, T, V)."""
    shape = (operands[0].shape[2], operands[1].shape[2])
    tall, wide = largest_block(shape[0]), largest_block(shape[1])
    before, after = (None if side < 0 else side for side in window)
    mask = splash_masks.FullMask(shape) if window == (-1, -1) else splash_masks.LocalMask(shape, (before, after), offset)
    blocks = splash.BlockSizes(
        block_q=tall,
        block_kv=wide,
        block_kv_compute=wide,
        block_q_dkv=tall,
        block_kv_dkv=wide,
        block_kv_dkv_compute=wide,
        block_q_dq=tall,
        block_kv_dq=wide,
    )
    attend = splash.make_splash_mha(
        splash_masks.MultiHeadMask([mask] * operands[0].shape[1]),
        block_sizes=blocks,
        head_shards=1,
        q_seq_shards=1,
        attn_logits_soft_cap=soft_cap or None,
    )
    if segments is None:
        return jax.vmap(attend)(*operands)
    return jax.vmap(lambda q, k, v, *ids: attend(q, k, v, segment_ids=splash.SegmentIds(*ids)))(*operands, *segments)


def biased_by_flash(
    operands: list[jax.Array], bias: jax.Array | None, seen: jax.Array, segments: list[jax.Array], shape: tuple[int, int]
) -> jax.Array:
    """Flash attention with an array added to the scores; what is not seen is added as a very negative number."""
    query, key, value = operands
    batch, heads, long, _ = query.shape
    each = heads // key.shape[1]
    key, value = (jnp.repeat(x, each, axis=1) for x in (key, value))
    added = jnp.where(seen, 0 if bias is None else promote_half(bias), -0.7 * float(np.finfo(np.float32).max))
    added = pad_axis(pad_axis(jnp.broadcast_to(added, (batch, heads, *shape)), 2, long), 3, key.shape[2])
    return tpu_flash.flash_attention(query, key, value, added, tpu_flash.SegmentIds(*segments))


QKV = (Array((2, 128, 4, 64)), Array((2, 128, 4, 64)), Array((2, 128, 4, 64)))
KEY = np.array([7, 11], np.uint32)
GROUPED = (Array((2, 37, 4, 32)), Array((2, 50, 2, 32)), Array((2, 50, 2, 32)))
SHAPES = (
    Case((*QKV, None, None), {"causal": True}),
    Case((*GROUPED, None, None), {"causal": True, "scale": 0.25}),
    Case((*GROUPED, None, None), {"window": (5, 3)}),
    Case((*GROUPED, None, None), {"window": (7, 0), "soft_cap": 3.0}),
    Case((*GROUPED, None, None, Array((2, 37), "int", 3), Array((2, 50), "int", 2))),
    Case((*GROUPED, Array((1, 4, 37, 50)), None), {"causal": True}),
    Case((*GROUPED, None, Array((2, 1, 37, 50), "bool"))),
    Case((*GROUPED, Array((2, 1, 1, 50)), Array((37, 50), "bool"), Array((2, 37), "int", 2), Array((2, 50), "int", 2))),
    Case((*GROUPED, None, None, Array((2, 37), "int", 2), Array((2, 50), "int", 2)), {"causal": True, "dropout": 0.3, "rng": KEY}),
    Case((Array((1, 9, 1, 16)), Array((1, 130, 1, 16)), Array((1, 130, 1, 24)))),
    Case((Array((1, 3, 1, 4)), Array((1, 5, 1, 4)), Array((1, 5, 1, 4))), {"causal": True}, tiny=True),
    Case((Array((1, 3, 1, 4)), Array((1, 5, 1, 4)), Array((1, 5, 1, 4))), {"window": (2, 1), "dropout": 0.5, "rng": KEY}, tiny=True),
)
KERNEL = Kernel(
    "attention",
    flash_attention,
    origin="jax.experimental.pallas.ops.tpu: splash_attention, and flash_attention for biases and masks; with dropout ours, as neither has it",
    gradient="kernel",
    shapes=SHAPES,
    bench=(
        Case((Array((4, 4096, 32, 128)), Array((4, 4096, 8, 128)), Array((4, 4096, 8, 128))), {"causal": True}),
        Case((*[Array((4, 2048, 16, 64))] * 3, Array((1, 16, 2048, 2048)))),
        Case((*[Array((4, 2048, 16, 64))] * 3,), {"causal": True, "dropout": 0.1, "rng": KEY}),
    ),
)
