"""The function behind multi-head attention, with all its parameters as arguments."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from flax import nnx

from migrate_agent.tools.vendored.attention import merge_masks, safe_softmax
from migrate_agent.tools.vendored.dropout import dropout
from migrate_agent.tools.vendored.linear import linear
from migrate_agent.tools.vendored.numeric import promote_half


def one_more(x: jax.Array, row: jax.Array | None) -> jax.Array:
    """`x` (N, S, E) with `row` (1, 1, E) at the end of each sequence."""
    return x if row is None else jnp.concatenate([x, jnp.broadcast_to(row, (x.shape[0], 1, x.shape[2])).astype(x.dtype)], axis=1)


def multi_head_attention_forward(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: jax.Array | None,
    in_proj_bias: jax.Array | None,
    bias_k: jax.Array | None,
    bias_v: jax.Array | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: jax.Array,
    out_proj_bias: jax.Array | None,
    training: bool = True,
    key_padding_mask: jax.Array | None = None,
    need_weights: bool = True,
    attn_mask: jax.Array | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: jax.Array | None = None,
    k_proj_weight: jax.Array | None = None,
    v_proj_weight: jax.Array | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
    *,
    rngs: nnx.Rngs | None = None,
) -> tuple[jax.Array, jax.Array | None]:
    """Attention of (L, N, E) or (L, E): the output, and with `need_weights` the weights (N, L, S) or (N, heads, L, S).

    https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html
    """
    single = query.ndim == 2
    query, key, value = (x[None] if single else x.swapaxes(0, 1) for x in (query, key, value))
    padding = key_padding_mask[None] if single and key_padding_mask is not None else key_padding_mask
    if is_causal and padding is None and not need_weights:
        attn_mask = jnp.triu(jnp.ones((query.shape[1], key.shape[1]), bool), 1)
    mask = merge_masks(attn_mask, padding, num_heads, promote_half(query).dtype)
    separate = [weight for weight in (q_proj_weight, k_proj_weight, v_proj_weight) if weight is not None]
    parts = separate if use_separate_proj_weight or in_proj_weight is None else jnp.split(in_proj_weight, 3)
    biases = [None] * 3 if in_proj_bias is None else jnp.split(in_proj_bias, 3)
    query, key, value = (linear(x, w, b) for x, w, b in zip((query, key, value), parts, biases, strict=True))
    zero = jnp.zeros((1, 1, key.shape[-1])) if add_zero_attn else None
    key, value = one_more(one_more(key, bias_k), zero), one_more(one_more(value, bias_v), zero)
    if mask is not None and mask.shape[-1] < key.shape[1]:
        mask = jnp.pad(mask, [(0, 0)] * (mask.ndim - 1) + [(0, key.shape[1] - mask.shape[-1])])
    batch, length, width = query.shape
    query, key, value = (x.reshape(batch, x.shape[1], num_heads, width // num_heads).swapaxes(1, 2) for x in (query, key, value))
    scores = promote_half(query) @ promote_half(key).swapaxes(-1, -2) / math.sqrt(width // num_heads)
    scores = scores if mask is None else scores + mask
    by_head = (jax.nn.softmax(scores) if need_weights else safe_softmax(scores)).astype(query.dtype)
    by_head = dropout(by_head, dropout_p, training, rngs=rngs)
    output = linear((by_head @ value).swapaxes(1, 2).reshape(batch, length, width), out_proj_weight, out_proj_bias)
    shown = (by_head.mean(1) if average_attn_weights else by_head) if need_weights else None
    if single:
        return output[0], None if shown is None else shown[0]
    return output.swapaxes(0, 1), shown
