"""Distances and similarities with PyTorch's semantics."""

import jax
import jax.numpy as jnp
from flax import nnx

from migrate_agent.tools.vendored.numeric import absolute


def p_norm(x: jax.Array, p: float, axis: int, keepdims: bool = False) -> jax.Array:
    """(Σ |x|ᵖ)^(1/p), whose gradient at zero is zero, as in PyTorch.

    https://docs.pytorch.org/docs/stable/generated/torch.linalg.vector_norm.html
    """
    if x.ndim == 0:  # which torch takes for a vector of one
        return p_norm(x[None], p, axis, keepdims).reshape(())
    if p in (0, 1, float("inf"), float("-inf")):
        return jnp.linalg.norm(absolute(x), ord=p, axis=axis, keepdims=keepdims)
    total = (jnp.abs(x) ** p).sum(axis, keepdims=keepdims)
    is_zero = total == 0
    return jnp.where(is_zero, 0, jnp.where(is_zero, 1, total) ** (1 / p))


def pairwise_distance(x1: jax.Array, x2: jax.Array, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> jax.Array:
    """The p-norm of x1 - x2 + eps over the last axis.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.pairwise_distance.html
    """
    return p_norm(x1 - x2 + eps, p, -1, keepdim)


def cosine_similarity(x1: jax.Array, x2: jax.Array, dim: int = 1, eps: float = 1e-8) -> jax.Array:
    """x1 · x2 / (max(|x1|, eps) max(|x2|, eps)) along `dim`.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.cosine_similarity.html
    """
    x1, x2 = jnp.broadcast_arrays(x1, x2)
    unit1, unit2 = (x / clamped_norm(x, dim, eps) for x in (x1, x2))
    return (unit1 * unit2).sum(dim if x1.ndim else None)


def clamped_norm(x: jax.Array, dim: int, eps: float) -> jax.Array:
    """max(|x|, eps) along `dim`, which is kept; the gradient flows as if nothing were clamped."""
    norm = p_norm(x, 2, dim, keepdims=True)
    return norm + jax.lax.stop_gradient(jnp.maximum(norm, eps) - norm)


def normalize(input: jax.Array, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> jax.Array:
    """`input` over its p-norm along `dim`, of at least `eps`.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.normalize.html
    """
    norm = p_norm(input, p, dim, keepdims=True)
    return input / jnp.where(norm < eps, eps, norm)


class CosineSimilarity(nnx.Module):
    """Cosine of the angle along `dim`. https://docs.pytorch.org/docs/stable/generated/torch.nn.CosineSimilarity.html"""

    def __init__(self, dim: int = 1, eps: float = 1e-8, *, rngs: nnx.Rngs | None = None) -> None:
        self.dim, self.eps = dim, eps

    def __call__(self, x1: jax.Array, x2: jax.Array) -> jax.Array:
        return cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(nnx.Module):
    """The p-norm distance over the last axis. https://docs.pytorch.org/docs/stable/generated/torch.nn.PairwiseDistance.html"""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False, *, rngs: nnx.Rngs | None = None) -> None:
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def __call__(self, x1: jax.Array, x2: jax.Array) -> jax.Array:
        return pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
