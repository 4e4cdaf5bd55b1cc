"""Attention of one new token a sequence over keys and values that lie in pages, for decoding. The TPU kernel is jax's own."""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention as tpu_paged

from migrate_agent.tools.kernels.catalogue import Array, Case, Kernel
from migrate_agent.tools.kernels.common import run_kernel, with_gradient
from migrate_agent.tools.vendored.numeric import promote_half


def paged_attention(
    query: jax.Array,
    key_pages: jax.Array,
    value_pages: jax.Array,
    lengths: jax.Array,
    pages: jax.Array,
    *,
    scale: float | None = None,
    implementation: str = "xla",
) -> jax.Array:
    """softmax(scale · query keyᵀ) value over the first `lengths[b]` tokens: (B, H, D), (K, P, S, D) twice, int (B,), int (B, N) → (B, H, D).

    `pages[b]` lists the pages of sequence b, S tokens each, in order; K divides H. Every length is at least one. Bfloat16 has a TPU
    kernel where D is a multiple of 128 and S of 16; on float32 it is only as exact as on bfloat16, so that is refused.
    https://arxiv.org/abs/2309.06180
    """
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    same = query.dtype == key_pages.dtype == value_pages.dtype == jnp.bfloat16
    reason = "" if same else f"the TPU kernel takes bfloat16, not {query.dtype} and {key_pages.dtype}"
    reason = reason or ("" if query.shape[-1] % 128 == 0 else f"heads of {query.shape[-1]} fill no tiles of 128")
    reason = reason or ("" if key_pages.shape[2] % 16 == 0 else f"pages of {key_pages.shape[2]} tokens fill no tiles of 16")
    reference = partial(paged_reference, scale=scale)

    def kernel(*operands: jax.Array) -> jax.Array:
        return paged_on_tpu(*operands, scale)

    return run_kernel("paged_attention", implementation, reason, kernel, reference, query, key_pages, value_pages, lengths, pages)


def paged_reference(
    query: jax.Array, key_pages: jax.Array, value_pages: jax.Array, lengths: jax.Array, pages: jax.Array, scale: float
) -> jax.Array:
    """The same in plain JAX, which gathers the pages."""
    batch, heads, size = query.shape
    keys, values = (promote_half(x[:, pages]).reshape(x.shape[0], batch, -1, size) for x in (key_pages, value_pages))
    grouped = promote_half(query).reshape(batch, keys.shape[0], -1, size) * scale
    scores = jnp.einsum("bkgd,kbsd->bkgs", grouped, keys)
    seen = jnp.arange(keys.shape[2]) < lengths[:, None]
    weights = jax.nn.softmax(jnp.where(seen[:, None, None], scores, -jnp.inf), axis=-1)
    return jnp.einsum("bkgs,kbsd->bkgd", weights, values).reshape(batch, heads, size).astype(query.dtype)


def paged_forward(
    query: jax.Array, key_pages: jax.Array, value_pages: jax.Array, lengths: jax.Array, pages: jax.Array, scale: float
) -> jax.Array:
    """jax's kernel, with as many pages to a step as divide a sequence's, up to eight."""
    scaled = (promote_half(query) * scale).astype(query.dtype)
    together = next(n for n in (8, 4, 2, 1) if pages.shape[1] % n == 0)
    found = tpu_paged(scaled, key_pages, value_pages, lengths.astype(jnp.int32), pages.astype(jnp.int32), pages_per_compute_block=together)
    return found.astype(query.dtype)


def paged_backward(scale: float, saved: tuple[jax.Array, ...], grad: jax.Array) -> tuple[Any, ...]:
    """The gradients by plain JAX: decoding asks for none."""
    *floats, lengths, pages = saved
    pull = jax.vjp(lambda query, keys, values: paged_reference(query, keys, values, lengths, pages, scale), *floats)[1]
    return *pull(grad), *(np.zeros(x.shape, jax.dtypes.float0) for x in (lengths, pages))


paged_on_tpu = with_gradient(paged_forward, lambda *operands: (paged_forward(*operands), operands[:-1]), paged_backward, static=(5,))


SHAPES = (
    Case((Array((3, 8, 128)), Array((2, 12, 16, 128)), Array((2, 12, 16, 128)), Array((3,), "lengths", 64), Array((3, 4), "int", 12))),
    Case((Array((2, 16, 128)), Array((2, 5, 32, 128)), Array((2, 5, 32, 128)), Array((2,), "lengths", 96), Array((2, 3), "int", 5))),
)
KERNEL = Kernel(
    "paged_attention",
    paged_attention,
    origin="jax.experimental.pallas.ops.tpu.paged_attention",
    gradient="plain JAX: decoding asks for none",
    shapes=SHAPES,
    dtypes=(jnp.bfloat16,),
    bench=(
        Case(
            (
                Array((32, 32, 128)),
                *[Array((8, 1024, 32, 128))] * 2,
                Array((32,), "lengths", 1024),
                Array((32, 32), "int", 1024),
            )
        ),
    ),
)
