"""Scaled dot-product and multi-head attention with PyTorch's semantics."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from migrate_agent.tools.vendored.dropout import dropout
from migrate_agent.tools.vendored.linear import Linear, linear
from migrate_agent.tools.vendored.numeric import cast_parameters, promote_half, uniform_init, value_of


def safe_softmax(scores: jax.Array) -> jax.Array:
    """Softmax over the last axis; a row that is masked out entirely (all -inf) becomes zero instead of NaN."""
    masked = jnp.all(scores == -jnp.inf, axis=-1, keepdims=True)
    return jnp.where(masked, 0, jax.nn.softmax(jnp.where(masked, 0, scores), axis=-1))


def scaled_dot_product_attention(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    attn_mask: jax.Array | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    rngs: nnx.Rngs | None = None,
) -> jax.Array:
    """softmax(query keyᵀ scale + mask) value: (…, L, E), (…, S, E), (…, S, V) → (…, L, V).

    A boolean `attn_mask` is True where attention is allowed; any other is added. `is_causal` masks from the upper left corner.
    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
    """
    if enable_gqa:
        key, value = (jnp.repeat(x, query.shape[-3] // x.shape[-3], axis=-3) for x in (key, value))
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = promote_half(query) @ promote_half(key).swapaxes(-1, -2) * scale
    if is_causal:
        attn_mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    if attn_mask is not None:
        scores = jnp.where(attn_mask, scores, -jnp.inf) if attn_mask.dtype == bool else scores + attn_mask
    weights = safe_softmax(scores).astype(query.dtype)
    if dropout_p != 0.0:
        weights = dropout(weights, dropout_p, rngs=rngs)
    return weights @ value


def merge_masks(attn_mask: jax.Array | None, key_padding_mask: jax.Array | None, heads: int, dtype: jnp.dtype) -> jax.Array | None:
    """One additive mask that broadcasts to (N, heads, L, S), from (L, S) or (N * heads, L, S), and (N, S); True means masked."""
    total = None
    if attn_mask is not None:
        mask = additive_mask(attn_mask, dtype)
        total = mask[None, None] if mask.ndim == 2 else mask.reshape(-1, heads, *mask.shape[1:])
    if key_padding_mask is not None:
        padding = additive_mask(key_padding_mask, dtype)[:, None, None, :]
        total = padding if total is None else total + padding
    return total


def additive_mask(mask: jax.Array, dtype: jnp.dtype) -> jax.Array:
    """A boolean mask as 0 and -inf; any other as it is."""
    return jnp.where(mask, -jnp.inf, 0).astype(dtype) if mask.dtype == bool else mask.astype(dtype)


class MultiheadAttention(nnx.Module):
    """Multi-head attention on (L, N, E), (N, L, E) with `batch_first`, or (L, E).

    Gives the output and, with `need_weights`, the weights (N, L, S), or (N, heads, L, S) where they are not averaged.
    https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        rngs: nnx.Rngs,
    ) -> None:
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self.head_dim, self.add_zero_attn = embed_dim // num_heads, add_zero_attn
        self.deterministic = False
        self.rngs = rngs

        def parameter(*shape: int) -> nnx.Param[jax.Array]:
            return nnx.Param(uniform_init(math.sqrt(6 / sum(shape)))(rngs.params(), shape))

        packed = self.kdim == embed_dim and self.vdim == embed_dim
        self.in_proj_weight = nnx.data(parameter(3 * embed_dim, embed_dim) if packed else None)
        self.q_proj_weight = nnx.data(None if packed else parameter(embed_dim, embed_dim))
        self.k_proj_weight = nnx.data(None if packed else parameter(embed_dim, self.kdim))
        self.v_proj_weight = nnx.data(None if packed else parameter(embed_dim, self.vdim))
        self.in_proj_bias = nnx.data(nnx.Param(jnp.zeros(3 * embed_dim, jnp.float32)) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias, rngs=rngs)
        if self.out_proj.bias is not None:
            self.out_proj.bias[...] = jnp.zeros_like(self.out_proj.bias[...])
        normal = jax.nn.initializers.normal(math.sqrt(2 / (2 * embed_dim)))
        self.bias_k = nnx.data(nnx.Param(normal(rngs.params(), (1, 1, embed_dim), jnp.float32)) if add_bias_kv else None)
        self.bias_v = nnx.data(nnx.Param(normal(rngs.params(), (1, 1, embed_dim), jnp.float32)) if add_bias_kv else None)
        cast_parameters(self, dtype)

    def __call__(
        self,
        query: jax.Array,
        key: jax.Array,
        value: jax.Array,
        key_padding_mask: jax.Array | None = None,
        need_weights: bool = True,
        attn_mask: jax.Array | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[jax.Array, jax.Array | None]:
        if query.ndim == 2:
            masks = None if key_padding_mask is None else key_padding_mask[None]
            axis = 0 if self.batch_first else 1
            query, key, value = (jnp.expand_dims(x, axis) for x in (query, key, value))
            output, weights = self(query, key, value, masks, need_weights, attn_mask, average_attn_weights, is_causal)
            return output.squeeze(axis), None if weights is None else weights.squeeze(0)
        if not self.batch_first:
            query, key, value = (x.swapaxes(0, 1) for x in (query, key, value))
        mask = merge_masks(attn_mask, key_padding_mask, self.num_heads, promote_half(query).dtype)
        query, key, value = self.project(query, key, value)
        attended, by_head = self.attend(query, key, value, mask, jax.nn.softmax if need_weights else safe_softmax)
        output = self.out_proj(attended)
        weights = (by_head.mean(1) if average_attn_weights else by_head) if need_weights else None
        return output if self.batch_first else output.swapaxes(0, 1), weights

    def project(self, query: jax.Array, key: jax.Array, value: jax.Array) -> list[jax.Array]:
        """Queries, keys and values (N, L, E), each by its part of the input projection."""
        separate = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        packed = value_of(self.in_proj_weight)
        weights = jnp.split(packed, 3) if packed is not None else [value_of(weight) for weight in separate]
        biases = [None] * 3 if self.in_proj_bias is None else jnp.split(self.in_proj_bias[...], 3)
        return [linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)]

    def attend(
        self,
        query: jax.Array,
        key: jax.Array,
        value: jax.Array,
        mask: jax.Array | None,
        softmax: Callable[[jax.Array], jax.Array],
    ) -> tuple[jax.Array, jax.Array]:
        """The heads' outputs (N, L, E) before the output projection, and the weights (N, heads, L, S).

        `softmax` differs: without `need_weights` PyTorch takes a path on which a row that is masked out entirely is zero instead of NaN.
        """
        batch, length, _ = query.shape
        if self.bias_k is not None:
            key, value, mask = self.extend(key, value, mask, value_of(self.bias_k), value_of(self.bias_v))
        if self.add_zero_attn:
            zero = jnp.zeros((1, 1, self.embed_dim), key.dtype)
            key, value, mask = self.extend(key, value, mask, zero, zero)
        query, key, value = (x.reshape(batch, x.shape[1], self.num_heads, self.head_dim).swapaxes(1, 2) for x in (query, key, value))
        scores = promote_half(query) @ promote_half(key).swapaxes(-1, -2) / math.sqrt(self.head_dim)
        weights = softmax(scores if mask is None else scores + mask).astype(query.dtype)
        weights = dropout(weights, self.dropout, not self.deterministic, rngs=self.rngs)
        return (weights @ value).swapaxes(1, 2).reshape(batch, length, self.embed_dim), weights

    def extend(
        self, key: jax.Array, value: jax.Array, mask: jax.Array | None, more_key: jax.Array, more_value: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array | None]:
        """One more key and value (1, 1, E) that every query may attend to."""
        row = (key.shape[0], 1, self.embed_dim)
        key = jnp.concatenate([key, jnp.broadcast_to(more_key, row)], axis=1)
        value = jnp.concatenate([value, jnp.broadcast_to(more_value, row)], axis=1)
        return key, value, None if mask is None else jnp.pad(mask, [(0, 0)] * (mask.ndim - 1) + [(0, 1)])
