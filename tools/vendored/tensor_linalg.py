"""Linear algebra with torch's conventions (https://pytorch.org/docs/stable/linalg.html)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy import linalg
from jax.typing import ArrayLike

from migrate_agent.tools.vendored.tensor_norm import linalg_norm


class Triangular(NamedTuple):
    """What `torch.triangular_solve` gives."""

    solution: jax.Array
    cloned_coefficient: jax.Array


class FactorAndInfo(NamedTuple):
    """What the `_ex` functions give; `info` is 0 where all went well."""

    result: jax.Array
    info: jax.Array


class LeastSquares(NamedTuple):
    """What `torch.linalg.lstsq` gives."""

    solution: jax.Array
    residuals: jax.Array
    rank: jax.Array
    singular_values: jax.Array


class SVD(NamedTuple):
    """What `torch.svd` gives: `A = U diag(S) Vᴴ`."""

    U: jax.Array
    S: jax.Array
    V: jax.Array


def adjoint(x: jax.Array) -> jax.Array:
    """Conjugate transpose of matrices."""
    return jnp.conj(x.mT)


def no_info(x: jax.Array) -> jax.Array:
    """The error codes of a batch of matrices that cannot fail here."""
    return jnp.zeros(x.shape[:-2], jnp.int32)


def cholesky(x: jax.Array, upper: bool = False) -> jax.Array:
    """Cholesky factor, from the lower triangle alone (https://pytorch.org/docs/stable/generated/torch.linalg.cholesky.html)."""
    factor = lax.linalg.cholesky(adjoint(x) if upper else x, symmetrize_input=True)
    return adjoint(factor) if upper else factor


def cholesky_ex(x: jax.Array, upper: bool = False) -> FactorAndInfo:
    """Cholesky factor and an error code (https://pytorch.org/docs/stable/generated/torch.linalg.cholesky_ex.html)."""
    return FactorAndInfo(cholesky(x, upper), no_info(x))


def inv_ex(x: jax.Array) -> FactorAndInfo:
    """Inverse and an error code (https://pytorch.org/docs/stable/generated/torch.linalg.inv_ex.html)."""
    return FactorAndInfo(jnp.linalg.inv(x), no_info(x))


def solve(a: jax.Array, b: jax.Array, left: bool = True) -> jax.Array:
    """`X` in `A X = B`, or with `left=False` in `X A = B` (https://pytorch.org/docs/stable/generated/torch.linalg.solve.html)."""
    if left:
        vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])
        return jnp.linalg.solve(a, b[..., None])[..., 0] if vector else jnp.linalg.solve(a, b)
    return jnp.linalg.solve(a.mT, b.mT).mT


def solve_ex(a: jax.Array, b: jax.Array, left: bool = True) -> FactorAndInfo:
    """`solve` and an error code (https://pytorch.org/docs/stable/generated/torch.linalg.solve_ex.html)."""
    return FactorAndInfo(solve(a, b, left), no_info(a))


def solve_triangular(a: jax.Array, b: jax.Array, *, upper: bool, left: bool = True, unitriangular: bool = False) -> jax.Array:
    """`X` in `A X = B` (or `X A = B`) for triangular `A` (https://pytorch.org/docs/stable/generated/torch.linalg.solve_triangular.html)."""
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = jnp.broadcast_to(a, batch + a.shape[-2:]), jnp.broadcast_to(b, batch + b.shape[-2:])
    return lax.linalg.triangular_solve(a, b, left_side=left, lower=not upper, unit_diagonal=unitriangular)


def triangular_solve(b: jax.Array, a: jax.Array, upper: bool = True, transpose: bool = False, unitriangular: bool = False) -> Triangular:
    """`X` in `A X = b` for triangular `A`, and `A` (https://pytorch.org/docs/stable/generated/torch.triangular_solve.html)."""
    matrix, upper = (a.mT, not upper) if transpose else (a, upper)
    return Triangular(solve_triangular(matrix, b, upper=upper, unitriangular=unitriangular), a)


def cholesky_solve(b: jax.Array, factor: jax.Array, upper: bool = False) -> jax.Array:
    """`X` in `A X = B` from the Cholesky factor of `A` (https://pytorch.org/docs/stable/generated/torch.cholesky_solve.html)."""
    lower = adjoint(factor) if upper else factor
    return solve_triangular(adjoint(lower), solve_triangular(lower, b, upper=False), upper=True)


def cholesky_inverse(factor: jax.Array, upper: bool = False) -> jax.Array:
    """The inverse of `A` from its Cholesky factor (https://pytorch.org/docs/stable/generated/torch.cholesky_inverse.html)."""
    return cholesky_solve(jnp.eye(factor.shape[-1], dtype=factor.dtype), jnp.triu(factor) if upper else jnp.tril(factor), upper)


def eigh(x: jax.Array, uplo: str = "L") -> tuple[jax.Array, jax.Array]:
    """Eigenvalues and eigenvectors of a Hermitian matrix, read from one triangle (https://pytorch.org/docs/stable/generated/torch.linalg.eigh.html)."""
    return jnp.linalg.eigh(x, UPLO=uplo, symmetrize_input=True)


def legacy_qr(x: jax.Array, some: bool = True) -> tuple[jax.Array, jax.Array]:
    """`torch.qr` (https://pytorch.org/docs/stable/generated/torch.qr.html)."""
    q, r = jnp.linalg.qr(x, mode="reduced" if some else "complete")
    return q, r


def legacy_svd(x: jax.Array, some: bool = True, compute_uv: bool = True) -> SVD:
    """`torch.svd`, which gives V and not its conjugate transpose (https://pytorch.org/docs/stable/generated/torch.svd.html)."""
    if not compute_uv:
        rows, columns = x.shape[-2:]
        zeros = [jnp.zeros((*x.shape[:-2], size, size), x.dtype) for size in (rows, columns)]
        return SVD(zeros[0], jnp.linalg.svd(x, compute_uv=False), zeros[1])
    u, s, vh = jnp.linalg.svd(x, full_matrices=not some)
    return SVD(u, s, adjoint(vh))


def lu_factor(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Compact LU factors and pivots counted from 1 (https://pytorch.org/docs/stable/generated/torch.linalg.lu_factor.html)."""
    lu, pivots = linalg.lu_factor(x)
    return lu, pivots + 1


def lu_solve(lu: jax.Array, pivots: jax.Array, b: jax.Array, left: bool = True, adjoint: bool = False) -> jax.Array:
    """`X` in `A X = B` (or `X A = B`) from LU factors of `A` (https://pytorch.org/docs/stable/generated/torch.linalg.lu_solve.html)."""
    if not left:
        return jnp.conj(lu_solve(lu, pivots, jnp.conj(b.mT), adjoint=not adjoint).mT)
    batch = jnp.broadcast_shapes(lu.shape[:-2], b.shape[:-2])
    lu, b = jnp.broadcast_to(lu, batch + lu.shape[-2:]), jnp.broadcast_to(b, batch + b.shape[-2:])
    pivots = jnp.broadcast_to(pivots, batch + pivots.shape[-1:])
    one = lambda f, p, y: linalg.lu_solve((f, p), y, trans=2 if adjoint else 0)  # noqa: E731
    for _ in batch:
        one = jax.vmap(one)
    return one(lu, pivots - 1, b)


def logdet(x: jax.Array) -> jax.Array:
    """Log of the determinant, NaN where that is negative (https://pytorch.org/docs/stable/generated/torch.logdet.html)."""
    sign, log_abs = jnp.linalg.slogdet(x)
    return jnp.where(sign < 0, jnp.nan, log_abs)


def pinv(x: jax.Array, rtol: ArrayLike | None = None, atol: ArrayLike | None = None, hermitian: bool = False) -> jax.Array:
    """Pseudo-inverse; smaller singular values than `max(atol, rtol * largest)` count as 0.

    https://pytorch.org/docs/stable/generated/torch.linalg.pinv.html
    """
    if x.size == 0:
        return x.mT
    if hermitian:
        x = jnp.tril(x) + adjoint(jnp.tril(x, -1))
    absolute = 0.0 if atol is None else atol
    default = 0.0 if atol is not None else max(x.shape[-2:]) * jnp.finfo(x.dtype).eps
    largest = jnp.linalg.svd(lax.stop_gradient(x), compute_uv=False)[..., 0]
    limit = jnp.maximum(absolute, (default if rtol is None else rtol) * largest)
    return jnp.linalg.pinv(x, rtol=limit / jnp.where(largest == 0, 1, largest))


def matrix_rank(
    x: jax.Array, tol: ArrayLike | None = None, *, atol: ArrayLike | None = None, rtol: ArrayLike | None = None, hermitian: bool = False
) -> jax.Array:
    """How many singular values exceed the tolerance (https://pytorch.org/docs/stable/generated/torch.linalg.matrix_rank.html)."""
    if hermitian:
        x = jnp.tril(x) + adjoint(jnp.tril(x, -1))
    if x.size == 0:
        return jnp.zeros(x.shape[:-2], int)
    singular = jnp.linalg.svd(x, compute_uv=False)
    absolute = atol if tol is None else tol
    default = 0.0 if absolute is not None else max(x.shape[-2:]) * jnp.finfo(x.dtype).eps
    limit = jnp.maximum(0.0 if absolute is None else absolute, (default if rtol is None else rtol) * singular[..., 0])
    return jnp.sum(singular > limit[..., None], axis=-1)


def cond(x: jax.Array, p: float | str | None = None) -> jax.Array:
    """Condition number (https://pytorch.org/docs/stable/generated/torch.linalg.cond.html)."""
    if x.size == 0:
        return jnp.zeros(x.shape[:-2], x.real.dtype)
    if p in (None, 2, -2):
        singular = jnp.linalg.svd(x, compute_uv=False)
        ratio = singular[..., 0] / singular[..., -1]
        return 1 / ratio if p == -2 else ratio
    return linalg_norm(x, p, (-2, -1)) * linalg_norm(jnp.linalg.inv(x), p, (-2, -1))


def lstsq(a: jax.Array, b: jax.Array) -> LeastSquares:
    """Least-squares solution of `A X = B` for `A` of full rank (https://pytorch.org/docs/stable/generated/torch.linalg.lstsq.html)."""
    vector = b.ndim == a.ndim - 1
    solution = pinv(a) @ (b[..., None] if vector else b)
    empty = jnp.zeros(0, a.dtype)
    rows, columns = a.shape[-2:]
    residuals = empty
    if rows > columns and not vector:
        residuals = jnp.sum(jnp.abs(a @ solution - b) ** 2, axis=-2)
    return LeastSquares(solution[..., 0] if vector else solution, residuals, jnp.zeros(0, int), empty)


def vander(x: jax.Array, n: int | None = None) -> jax.Array:
    """Powers 0 … n - 1 of the last axis (https://pytorch.org/docs/stable/generated/torch.linalg.vander.html)."""
    return x[..., None] ** jnp.arange(x.shape[-1] if n is None else n)
