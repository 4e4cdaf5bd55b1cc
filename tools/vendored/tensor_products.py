"""Products and distances (https://pytorch.org/docs/stable/torch.html#blas-and-lapack-operations)."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from migrate_agent.tools.vendored.tensor_norm import vector_norm


def einsum(equation: str, operands: Sequence[jax.Array]) -> jax.Array:
    """`jnp.einsum` of a sequence of arrays (https://pytorch.org/docs/stable/generated/torch.einsum.html)."""
    return jnp.einsum(equation, *operands)


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
