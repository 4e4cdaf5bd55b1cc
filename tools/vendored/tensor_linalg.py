"""Linear algebra with torch's conventions (https://pytorch.org/docs/stable/linalg.html)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy import linalg
from jax.typing import ArrayLike

from migrate_agent.tools.vendored.numeric import promote_half
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


def straight_through(value: jax.Array, x: jax.Array) -> jax.Array:
    """`value` with the gradient of `x`."""
    return x + lax.stop_gradient(value - x)


def read_triangle(x: jax.Array, upper: bool = False) -> jax.Array:
    """The Hermitian matrix of which `x` holds one triangle; the gradient goes to both, as torch's does."""
    half = jnp.triu(x) if upper else jnp.tril(x)
    whole = half + adjoint(jnp.triu(x, 1) if upper else jnp.tril(x, -1))
    return straight_through(whole, (x + adjoint(x)) / 2)


def cholesky(x: jax.Array, upper: bool = False) -> jax.Array:
    """Cholesky factor, from the lower triangle alone (https://pytorch.org/docs/stable/generated/torch.linalg.cholesky.html)."""
    factor = lax.linalg.cholesky(read_triangle(x, upper), symmetrize_input=False)
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
        solution: jax.Array = jnp.linalg.solve(a, b[..., None] if vector else b)
        return solution[..., 0] if vector else solution
    return solve(a.mT, b.mT).mT


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


def from_factor(factor: jax.Array, upper: bool) -> jax.Array:
    """The matrix whose Cholesky factor is one triangle of `factor`; the gradient goes to all of `factor`, as torch's does."""
    lower = straight_through(jnp.tril(adjoint(factor) if upper else factor), adjoint(factor) if upper else factor)
    return lower @ adjoint(lower)


def cholesky_solve(b: jax.Array, factor: jax.Array, upper: bool = False) -> jax.Array:
    """`X` in `A X = B` from the Cholesky factor of `A` (https://pytorch.org/docs/stable/generated/torch.cholesky_solve.html)."""
    return solve(from_factor(factor, upper), b)


def cholesky_inverse(factor: jax.Array, upper: bool = False) -> jax.Array:
    """The inverse of `A` from its Cholesky factor (https://pytorch.org/docs/stable/generated/torch.cholesky_inverse.html)."""
    inverse: jax.Array = jnp.linalg.inv(from_factor(factor, upper))
    return inverse


def eigh(x: jax.Array, uplo: str = "L") -> tuple[jax.Array, jax.Array]:
    """Eigenvalues and eigenvectors of a Hermitian matrix, read from one triangle (https://pytorch.org/docs/stable/generated/torch.linalg.eigh.html)."""
    values, vectors = jnp.linalg.eigh(read_triangle(x, uplo.upper() == "U"), symmetrize_input=False)
    return values, vectors


def symeig(x: jax.Array, eigenvectors: bool = False, upper: bool = True) -> tuple[jax.Array, jax.Array]:
    """`torch.symeig` of PyTorch before 2.0; without eigenvectors these are empty (https://docs.pytorch.org/docs/1.7.1/generated/torch.symeig.html)."""
    values, vectors = eigh(x, "U" if upper else "L")
    return values, vectors if eigenvectors else jnp.zeros(0, x.dtype)


def solve_with_factors(b: jax.Array, a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """`torch.solve` of PyTorch before 2.0: `X` of `a X = b`, and the factors of `a` (https://docs.pytorch.org/docs/1.7.1/generated/torch.solve.html)."""
    return jnp.linalg.solve(a, b), jax.scipy.linalg.lu_factor(a)[0]


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
    u, s, vh = svd(x, full_matrices=not some)
    return SVD(u, s, adjoint(vh))


def svd(x: jax.Array, full_matrices: bool = True) -> tuple[jax.Array, jax.Array, jax.Array]:
    """U, S and Vᴴ; no gradient flows from the vectors that full matrices have beyond the reduced ones.

    https://pytorch.org/docs/stable/generated/torch.linalg.svd.html
    """
    u, s, vh = jnp.linalg.svd(x, full_matrices=False)
    rank = s.shape[-1]
    if not full_matrices or set(x.shape[-2:]) == {rank}:
        return u, s, vh
    left, _, right = jnp.linalg.svd(lax.stop_gradient(x), full_matrices=True)
    return jnp.concatenate([u, left[..., rank:]], axis=-1), s, jnp.concatenate([vh, right[..., rank:, :]], axis=-2)


def matrix_exp(x: jax.Array) -> jax.Array:
    """Matrix exponential, of half precision by way of single (https://pytorch.org/docs/stable/generated/torch.linalg.matrix_exp.html)."""
    return linalg.expm(promote_half(x)).astype(x.dtype)


def lu(x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """P, L and U with `A = P L U` (https://pytorch.org/docs/stable/generated/torch.linalg.lu.html)."""
    factors, _, permutation = lax.linalg.lu(x)
    return split_lu(factors, permutation)


def split_lu(factors: jax.Array, permutation: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """P, L and U from compact factors and the order of the rows."""
    rows, size = factors.shape[-2], min(factors.shape[-2:])
    lower = jnp.tril(factors[..., :size], -1) + jnp.eye(rows, size, dtype=factors.dtype)
    p = (permutation[..., None, :] == jnp.arange(rows)[:, None]).astype(factors.dtype)
    return p, lower, jnp.triu(factors[..., :size, :])


def lu_factor(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Compact LU factors and pivots counted from 1 (https://pytorch.org/docs/stable/generated/torch.linalg.lu_factor.html)."""
    factors, pivots, _ = lax.linalg.lu(x)
    return factors, pivots + 1


def lu_factor_ex(x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """`lu_factor` and an error code (https://pytorch.org/docs/stable/generated/torch.linalg.lu_factor_ex.html)."""
    return *lu_factor(x), no_info(x)


def lu_unpack(factors: jax.Array, pivots: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """P, L and U from `lu_factor`'s result (https://pytorch.org/docs/stable/generated/torch.lu_unpack.html)."""
    return split_lu(factors, lax.linalg.lu_pivots_to_permutation(pivots - 1, factors.shape[-2]))


def householder_product(x: jax.Array, tau: jax.Array) -> jax.Array:
    """First columns of the product of Householder reflectors (https://pytorch.org/docs/stable/generated/torch.linalg.householder_product.html)."""
    rows, columns = x.shape[-2:]
    product = jnp.broadcast_to(jnp.eye(rows, columns, dtype=x.dtype), x.shape)
    for i in reversed(range(tau.shape[-1])):
        below = jnp.arange(rows)
        v = jnp.where(below == i, 1, jnp.where(below > i, x[..., :, i], 0))
        product = product - tau[..., i, None, None] * v[..., :, None] * (jnp.conj(v)[..., None, :] @ product)
    return product


def tensorsolve(a: jax.Array, b: jax.Array, dims: tuple[int, ...] | None = None) -> jax.Array:
    """`X` with `tensordot(A, X, X.ndim) = B` (https://pytorch.org/docs/stable/generated/torch.linalg.tensorsolve.html)."""
    a = a if dims is None else jnp.moveaxis(a, dims, tuple(range(a.ndim - len(dims), a.ndim)))
    shape = a.shape[b.ndim :]
    return solve(a.reshape(b.size, -1), b.reshape(-1)).reshape(shape)


def lu_solve(lu: jax.Array, pivots: jax.Array, b: jax.Array, left: bool = True, adjoint: bool = False) -> jax.Array:
    """`X` in `A X = B` (or `X A = B`) from LU factors of `A` (https://pytorch.org/docs/stable/generated/torch.linalg.lu_solve.html)."""
    if not left:
        return jnp.conj(lu_solve(lu, pivots, jnp.conj(b.mT), adjoint=not adjoint).mT)
    batch = jnp.broadcast_shapes(lu.shape[:-2], b.shape[:-2])
    lu, b = jnp.broadcast_to(lu, batch + lu.shape[-2:]), jnp.broadcast_to(b, batch + b.shape[-2:])
    pivots = jnp.broadcast_to(pivots, batch + pivots.shape[-1:])

    def one(factors: jax.Array, pivot: jax.Array, right: jax.Array) -> jax.Array:
        solution: jax.Array = linalg.lu_solve((factors, pivot), right, trans=2 if adjoint else 0)
        return solution

    run = one
    for _ in batch:
        run = jax.vmap(run)
    return run(lu, pivots - 1, b)


def det(x: jax.Array) -> jax.Array:
    """The determinant, 1 of matrices without elements (https://pytorch.org/docs/stable/generated/torch.linalg.det.html)."""
    return jnp.linalg.det(x) if x.shape[-1] else jnp.ones(x.shape[:-2], x.dtype)


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
        x = straight_through(read_triangle(x), x)
    absolute = 0.0 if atol is None else atol
    default = 0.0 if atol is not None else max(x.shape[-2:]) * float(np.finfo(x.dtype).eps)
    largest = jnp.linalg.svd(lax.stop_gradient(x), compute_uv=False)[..., 0]
    limit = jnp.maximum(absolute, (default if rtol is None else rtol) * largest)
    return jnp.linalg.pinv(x, rtol=limit / jnp.where(largest == 0, 1, largest))


def matrix_rank(
    x: jax.Array, tol: ArrayLike | None = None, *, atol: ArrayLike | None = None, rtol: ArrayLike | None = None, hermitian: bool = False
) -> jax.Array:
    """How many singular values exceed the tolerance (https://pytorch.org/docs/stable/generated/torch.linalg.matrix_rank.html)."""
    if hermitian:
        x = read_triangle(x)
    if x.size == 0:
        return jnp.zeros(x.shape[:-2], int)
    singular = jnp.linalg.svd(x, compute_uv=False)
    absolute = atol if tol is None else tol
    default = 0.0 if absolute is not None else max(x.shape[-2:]) * float(np.finfo(x.dtype).eps)
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


def lstsq(a: jax.Array, b: jax.Array, driver: str | None = None) -> LeastSquares:
    """Least-squares solution of `A X = B` for `A` of full rank (https://pytorch.org/docs/stable/generated/torch.linalg.lstsq.html)."""
    vector = b.ndim == a.ndim - 1
    solution = pinv(a) @ (b[..., None] if vector else b)
    rows, columns = a.shape[-2:]
    empty = jnp.zeros(0, a.dtype)
    residuals = jnp.sum(jnp.abs(a @ solution - b) ** 2, axis=-2) if rows > columns and not vector else empty
    rank = jnp.zeros(0, int) if driver == "gels" else matrix_rank(a)
    singular = jnp.linalg.svd(a, compute_uv=False) if driver in ("gelsd", "gelss") else empty
    return LeastSquares(solution[..., 0] if vector else solution, residuals, rank, singular)


def vander(x: jax.Array, n: int | None = None) -> jax.Array:
    """Powers 0 … n - 1 of the last axis (https://pytorch.org/docs/stable/generated/torch.linalg.vander.html)."""
    return jnp.atleast_1d(x)[..., None] ** jnp.arange(jnp.atleast_1d(x).shape[-1] if n is None else n)


def reflectors_times(x: jax.Array, tau: jax.Array, other: jax.Array, order: list[int]) -> jax.Array:
    """Householder reflectors, held below the diagonal of `x`, applied to `other` one after another."""
    below = jnp.arange(x.shape[-2])
    for i in order:
        v = jnp.where(below == i, 1, jnp.where(below > i, x[..., :, i], 0))
        other = other - tau[..., i, None, None] * v[..., :, None] * (jnp.conj(v)[..., None, :] @ other)
    return other


def ormqr(x: jax.Array, tau: jax.Array, other: jax.Array, left: bool = True, transpose: bool = False) -> jax.Array:
    """The product of `other` with the Q (or its adjoint) that `geqrf` holds in parts.

    https://pytorch.org/docs/stable/generated/torch.ormqr.html
    """
    if not left:
        return adjoint(ormqr(x, tau, adjoint(other), True, not transpose))
    order = list(range(tau.shape[-1]))
    return reflectors_times(x, jnp.conj(tau) if transpose else tau, other, order if transpose else order[::-1])


class Reflectors(NamedTuple):
    """What `torch.geqrf` gives: R above, Householder vectors below the diagonal, and their factors."""

    a: jax.Array
    tau: jax.Array


def geqrf(x: jax.Array) -> Reflectors:
    """QR decomposition in LAPACK's own form (https://pytorch.org/docs/stable/generated/torch.geqrf.html)."""
    held, tau = jnp.linalg.qr(x, mode="raw")
    return Reflectors(held.mT, tau)


def differentiable_eig() -> Callable[[jax.Array], tuple[jax.Array, jax.Array]]:
    """`jnp.linalg.eig` with the derivative of the vectors, which JAX lacks; they keep norm 1, and their phase is arbitrary."""
    decompose: Any = jax.custom_jvp(lambda x: tuple(jnp.linalg.eig(x)))

    def jvp(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[Any, Any]:
        values, vectors = decompose(*primals)
        change = jnp.linalg.solve(vectors, tangents[0].astype(vectors.dtype) @ vectors)
        same = jnp.eye(values.shape[-1], dtype=bool)
        gaps = jnp.where(same, 1, values[..., None, :] - values[..., :, None])
        turned = vectors @ jnp.where(same, 0, change / gaps)
        along = jnp.sum(jnp.conj(vectors) * turned, axis=-2, keepdims=True).real
        return (values, vectors), (jnp.diagonal(change, axis1=-2, axis2=-1), turned - vectors * along)

    decompose.defjvp(jvp)
    result: Callable[[jax.Array], tuple[jax.Array, jax.Array]] = decompose
    return result


def eig(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Eigenvalues and eigenvectors of any square matrix (https://pytorch.org/docs/stable/generated/torch.linalg.eig.html)."""
    return differentiable_eig()(x)
