"""Randomised low-rank decompositions, by Algorithm 5.1 of Halko, Martinsson and Tropp, 2009 (arXiv:0909.4061)."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from migrate_agent.tools.vendored.tensor_linalg import SVD, adjoint


def svd_lowrank(key: jax.Array, x: jax.Array, q: int | None = 6, niter: int | None = 2, mean: jax.Array | None = None) -> SVD:
    """`U diag(S) Vᴴ` with `q` columns, near `x - mean` (…, m, n) (https://pytorch.org/docs/stable/generated/torch.svd_lowrank.html)."""
    x = x if mean is None else x - mean
    if x.shape[-2] < x.shape[-1]:
        u, s, v = svd_lowrank(key, adjoint(x), q, niter)
        return SVD(v, s, u)
    start = jax.random.normal(key, (x.shape[-1], 6 if q is None else q), x.dtype)
    basis, _ = jnp.linalg.qr(x @ start)
    for _ in range(2 if niter is None else niter):
        basis, _ = jnp.linalg.qr(adjoint(x) @ basis)
        basis, _ = jnp.linalg.qr(x @ basis)
    u, s, vh = jnp.linalg.svd(adjoint(basis) @ x, full_matrices=False)
    return SVD(basis @ u, s, adjoint(vh))


def pca_lowrank(key: jax.Array, x: jax.Array, q: int | None = None, center: bool = True, niter: int = 2) -> SVD:
    """`svd_lowrank` of `x` (…, m, n) less the mean of its rows (https://pytorch.org/docs/stable/generated/torch.pca_lowrank.html)."""
    return svd_lowrank(key, x - x.mean(-2, keepdims=True) if center else x, min(6, *x.shape[-2:]) if q is None else q, niter)
