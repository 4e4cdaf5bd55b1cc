"""Products and distances (https://pytorch.org/docs/stable/torch.html#blas-and-lapack-operations)."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from migrate_agent.tools.vendored.tensor_norm import vector_norm


def einsum(equation: str, *operands: jax.Array | Sequence[jax.Array]) -> jax.Array:
    """`jnp.einsum` of arrays, or of one sequence of them (https://pytorch.org/docs/stable/generated/torch.einsum.html)."""
    several = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    return jnp.einsum(equation, *several)


def kron(x: jax.Array, y: jax.Array) -> jax.Array:
    """Kronecker product, of bools as `and`, in single precision where that is lower (https://pytorch.org/docs/stable/generated/torch.kron.html)."""
    dtype = jnp.result_type(x, y)
    floating = jnp.issubdtype(dtype, jnp.inexact)
    wide = jnp.promote_types(dtype, jnp.float32) if floating else jnp.promote_types(dtype, jnp.int8)
    return jnp.kron(x.astype(wide), y.astype(wide)).astype(dtype)


def tensordot(x: jax.Array, y: jax.Array, dims: int | Sequence[Sequence[int]] = 2) -> jax.Array:
    """Contraction of several axes; one of size 1 stands for as many as the other has.

    https://pytorch.org/docs/stable/generated/torch.tensordot.html
    """
    pairs = (range(x.ndim - dims, x.ndim), range(dims)) if isinstance(dims, int) else dims
    for a, b in zip(*pairs, strict=True):
        if x.shape[a] == 1 != y.shape[b]:
            y = y.sum(b, keepdims=True)
        elif y.shape[b] == 1 != x.shape[a]:
            x = x.sum(a, keepdims=True)
    return jnp.tensordot(x, y, axes=(tuple(pairs[0]), tuple(pairs[1])))


def cross(x: jax.Array, y: jax.Array, dim: int | None = None) -> jax.Array:
    """Cross product along `dim`, or the first axis of size 3 (https://pytorch.org/docs/stable/generated/torch.cross.html)."""
    shape = jnp.broadcast_shapes(x.shape, y.shape)
    axis = shape.index(3) if dim is None else dim % len(shape)
    return jnp.cross(jnp.broadcast_to(x, shape), jnp.broadcast_to(y, shape), axis=axis)


def cdist(x1: jax.Array, x2: jax.Array, p: float = 2.0) -> jax.Array:
    """p-norm distances (…, n, d), (…, m, d) → (…, n, m); the gradient is 0 where the distance is (https://pytorch.org/docs/stable/generated/torch.cdist.html)."""
    return vector_norm(x1[..., :, None, :] - x2[..., None, :, :], p, -1)


def pdist(x: jax.Array, p: float = 2.0) -> jax.Array:
    """p-norm distances between all pairs of rows (https://pytorch.org/docs/stable/generated/torch.nn.functional.pdist.html)."""
    rows, columns = np.triu_indices(x.shape[0], 1)
    return vector_norm(x[rows] - x[columns], p, -1)
