"""Attention as `torch.nn.functional.scaled_dot_product_attention` spells it, by the kernels of `attention.py`."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx

from migrate_agent.tools.kernels.attention import attention_reason, flash_attention
from migrate_agent.tools.kernels.common import float_reason, run_kernel
from migrate_agent.tools.vendored.attention import scaled_dot_product_attention


def fused_scaled_dot_product_attention(
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
    implementation: str = "xla",
) -> jax.Array:
    """softmax(query keyᵀ scale + mask) value: (…, L, E), (…, S, E), (…, S, V) → (…, L, V), as `scaled_dot_product_attention`.

    The TPU kernel takes (B, H, L, E) in float32 and bfloat16, but no mask beside dropout. It drops what plain JAX drops.
    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
    """
    rng = rngs.dropout() if rngs is not None and 0 < dropout_p < 1 else None
    drawn: Any = rngs if rng is None else OneKey(rng)

    def reference(query: jax.Array, key: jax.Array, value: jax.Array, mask: jax.Array | None) -> jax.Array:
        return scaled_dot_product_attention(query, key, value, mask, dropout_p, is_causal, scale, enable_gqa, rngs=drawn)

    def kernel(query: jax.Array, key: jax.Array, value: jax.Array, mask: jax.Array | None) -> jax.Array:
        query, key, value = (x.swapaxes(1, 2) for x in (query, key, value))
        causal = is_causal and query.shape[1] == key.shape[1]
        seen, bias = split_mask(mask)
        if is_causal and not causal:
            seen = jnp.tril(jnp.ones((query.shape[1], key.shape[1]), bool))
        attend = partial(flash_attention, causal=causal, scale=scale, dropout=dropout_p, rng=rng, implementation="tpu")
        return attend(query, key, value, bias, seen).swapaxes(1, 2)

    reason = float_reason(query, key, value) or sdpa_reason(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa, rng)
    return run_kernel("fused_scaled_dot_product_attention", implementation, reason, kernel, reference, query, key, value, attn_mask)


class OneKey(NamedTuple):
    """Stands in for `nnx.Rngs` where the key of the one dropout is drawn already: both implementations drop the same."""

    key: jax.Array

    def dropout(self) -> jax.Array:
        """The key."""
        return self.key


def split_mask(mask: jax.Array | None) -> tuple[jax.Array | None, jax.Array | None]:
    """What is seen, and what is added to the scores, of a mask that may be either; -inf is not seen."""
    if mask is None or mask.dtype == bool:
        return mask, None
    return mask > -jnp.inf, jnp.where(mask > -jnp.inf, mask, 0)


def sdpa_reason(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    mask: jax.Array | None,
    dropout: float,
    is_causal: bool,
    enable_gqa: bool,
    rng: jax.Array | None,
) -> str:
    """Why the TPU kernels cannot take this call, or ""."""
    if query.ndim != 4:
        return f"the TPU kernel takes queries with 4 axes, not {query.ndim}"
    heads = (query.shape[1], key.shape[1], value.shape[1])
    if heads[1] != heads[2] or (heads[0] != heads[1] and not enable_gqa) or not query.shape[0] == key.shape[0] == value.shape[0]:
        return "the TPU kernel broadcasts neither batch nor heads"
    array = mask if mask is not None else key if is_causal and query.shape[2] != key.shape[2] else None
    return attention_reason(query, key, value, None, array, None, None, window=(-1, -1), soft_cap=0.0, dropout=dropout, rng=rng)
