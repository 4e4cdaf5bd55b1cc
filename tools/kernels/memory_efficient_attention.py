"""Attention as xFormers spells it."""

import jax
import jax.numpy as jnp

from migrate_agent.tools.kernels.attention import flash_attention


class LowerTriangularMask:
    """Token i sees tokens 0 … i: what `xformers.ops.LowerTriangularMask()` stands for."""


def memory_efficient_attention(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    attn_bias: jax.Array | LowerTriangularMask | None = None,
    scale: float | None = None,
    *,
    implementation: str = "xla",
) -> jax.Array:
    """(B, T, H, D), (B, S, H, D), (B, S, H, V) → (B, T, H, V), or the same without H. A bias (B, H, T, S) or (B, T, S) is added to the scores.

    https://facebookresearch.github.io/xformers/components/ops.html
    """
    if query.ndim == 3:
        bias = attn_bias[:, None] if isinstance(attn_bias, jax.Array) else attn_bias
        query, key, value = (x[:, :, None] for x in (query, key, value))
        return memory_efficient_attention(query, key, value, bias, scale, implementation=implementation)[:, :, 0]
    mask = jnp.tril(jnp.ones((query.shape[1], key.shape[1]), bool)) if isinstance(attn_bias, LowerTriangularMask) else None
    bias = attn_bias if isinstance(attn_bias, jax.Array) else None
    return flash_attention(query, key, value, bias, mask, scale=scale, implementation=implementation)
