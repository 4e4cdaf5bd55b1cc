"""Linear algebra (https://pytorch.org/docs/stable/linalg.html)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.ops.calls import axis, ndim, required_literal, spelled
from migrate_agent.tools.rewrite.tables.registry import Call, Op, Refuse, Template

L = "torch.linalg."


def _det(call: Call) -> str:
    """The template of `det`, with the helper where a matrix without elements was observed."""
    fact = call.observed("A")
    empty = fact is not None and any(0 in shape[-2:] for shape in fact.shapes)
    return "vendored.det({A})" if empty else "jnp.linalg.det({A})"


def _matrix_exp(call: Call) -> str:
    """The template of `matrix_exp`. JAX's function does not take half precision."""
    fact = call.observed("A")
    full = fact is not None and fact.dtypes and not {"bfloat16", "float16"} & set(fact.dtypes)
    return "jax.scipy.linalg.expm({A})" if full else "vendored.matrix_exp({A})"


def _norm(helper: str) -> Template:
    def to(call: Call) -> str:
        return f"vendored.{helper}({{A}}, {{ord=None}}, {axis(call)}, keepdim={{keepdim}}, dtype={{dtype}})"

    return to


def _qr(call: Call) -> str:
    """The template of `qr`. Refused for `mode='r'`, where torch returns an empty Q and JAX only R."""
    mode = required_literal(call, "mode")
    # The number of results would change, and with it what the caller unpacks.
    if mode == "r":
        raise Refuse("`mode='r'` gives an empty Q: call jnp.linalg.qr(…, mode='r') and use its one result")
    return "jnp.linalg.qr({A}, mode={mode})"


def _solve(call: Call) -> str:
    """The template of `solve`: JAX's own function where `B` is certainly no batch of vectors."""
    # A batched `A` with a `B` of one axis less is a batch of vectors in torch and of matrices in
    # JAX.
    plain = ndim(call, "A") == 2 or (ndim(call, "A") is not None and ndim(call, "A") == ndim(call, "B"))
    return "jnp.linalg.solve({A}, {B})" if call.literal("left") is True and plain else "vendored.solve({A}, {B}, left={left})"


def _legacy_lu(call: Call) -> str:
    # The flag changes how many values come back, so that it must be known.
    return "vendored.lu_factor_ex({A})" if required_literal(call, "get_infos") else "vendored.lu_factor({A})"


def _cholesky(tensor: str) -> Template:
    def to(call: Call) -> str:
        upper = call.literal("upper")
        # `jnp.linalg.cholesky` first symmetrises its input; torch reads the lower triangle alone.
        if upper is False:
            return f"vendored.cholesky({{{tensor}}})"
        return f"vendored.cholesky({{{tensor}}}, upper={{upper}})"

    return to


INVERSES = [
    *spelled("inverse", "A", "jnp.linalg.inv({A})", "linalg.inv"),
    *spelled("pinverse", "input, rcond=1e-15", "jnp.linalg.pinv({input}, rtol={rcond=1e-15})"),
    Op(f"{L}inv_ex", "A, *, check_errors=False", "vendored.inv_ex({A})", returns="tuple"),
    Op(f"{L}pinv", "A, rtol=None, *, atol=None, hermitian=False", "vendored.pinv({A}, {rtol}, atol={atol}, hermitian={hermitian})"),
    Op(f"{L}solve", "A, B, *, left=True", _solve),
    Op(f"{L}solve_ex", "A, B, *, left=True, check_errors=False", "vendored.solve_ex({A}, {B}, left={left})", returns="tuple"),
    Op(
        f"{L}solve_triangular",
        "A, B, *, upper, left=True, unitriangular=False",
        "vendored.solve_triangular({A}, {B}, upper={upper}, left={left}, unitriangular={unitriangular})",
    ),
    Op(
        "torch.triangular_solve",
        "b, A, upper=True, transpose=False, unitriangular=False",
        "vendored.triangular_solve({b}, {A}, upper={upper}, transpose={transpose}, unitriangular={unitriangular})",
        method="triangular_solve",
        returns="tuple",
    ),
    Op(f"{L}tensorinv", "A, ind=2", "jnp.linalg.tensorinv({A}, ind={ind})"),
    Op(f"{L}tensorsolve", "A, B, dims=None", "vendored.tensorsolve({A}, {B}, {dims})"),
    Op(f"{L}lstsq", "A, B, rcond=None, *, driver=None", "vendored.lstsq({A}, {B}, driver={driver})", returns="tuple"),
]

DECOMPOSITIONS = [
    *spelled("cholesky", "input, upper=False", _cholesky("input")),
    Op(f"{L}cholesky", "A, *, upper=False", _cholesky("A")),
    Op(f"{L}cholesky_ex", "A, *, upper=False, check_errors=False", "vendored.cholesky_ex({A}, upper={upper})", returns="tuple"),
    *spelled("cholesky_solve", "B, L, upper=False", "vendored.cholesky_solve({B}, {L}, upper={upper})"),
    *spelled("cholesky_inverse", "L, upper=False", "vendored.cholesky_inverse({L}, upper={upper})"),
    Op(f"{L}qr", "A, mode='reduced'", _qr, returns="tuple"),
    *spelled("qr", "input, some=True", "vendored.legacy_qr({input}, {some})", returns="tuple"),
    Op(f"{L}svd", "A, full_matrices=True, *, driver=None", "vendored.svd({A}, full_matrices={full_matrices})", returns="tuple"),
    # `torch.svd` gives V, `torch.linalg.svd` its conjugate transpose; `some` is the opposite flag.
    *spelled("svd", "input, some=True, compute_uv=True", "vendored.legacy_svd({input}, {some}, {compute_uv})", returns="tuple"),
    Op(f"{L}svdvals", "A, *, driver=None", "jnp.linalg.svd({A}, compute_uv=False)"),
    Op(f"{L}eigh", "A, UPLO='L'", "vendored.eigh({A}, {UPLO})", returns="tuple"),
    Op(f"{L}eigvalsh", "A, UPLO='L'", "vendored.eigh({A}, {UPLO})[0]"),
    *spelled("symeig", "input, eigenvectors=False, upper=True", "vendored.symeig({input}, {eigenvectors}, {upper})", returns="tuple"),
    *spelled("solve", "input, A", "vendored.solve_with_factors({input}, {A})", returns="tuple"),
    Op(f"{L}eig", "A", "vendored.eig({A})", returns="tuple"),
    Op(f"{L}eigvals", "A", "jnp.linalg.eigvals({A})"),
    Op(f"{L}lu", "A, *, pivot=True", "vendored.lu({A})", returns="tuple"),
    # Torch counts pivots from 1, as LAPACK does; JAX counts from 0.
    Op(f"{L}lu_factor", "A, *, pivot=True", "vendored.lu_factor({A})", returns="tuple"),
    Op(
        f"{L}lu_solve",
        "LU, pivots, B, *, left=True, adjoint=False",
        "vendored.lu_solve({LU}, {pivots}, {B}, left={left}, adjoint={adjoint})",
    ),
    Op(f"{L}lu_factor_ex", "A, *, pivot=True, check_errors=False", "vendored.lu_factor_ex({A})", returns="tuple"),
    Op("torch.lu", "A, pivot=True, get_infos=False", _legacy_lu, method="lu", returns="tuple"),
    Op(
        "torch.lu_unpack",
        "LU_data, LU_pivots, unpack_data=True, unpack_pivots=True",
        "vendored.lu_unpack({LU_data}, {LU_pivots})",
        returns="tuple",
    ),
    *spelled("lu_solve", "b, LU_data, LU_pivots", "vendored.lu_solve({LU_data}, {LU_pivots}, {b})"),
    Op(f"{L}householder_product", "A, tau", "vendored.householder_product({A}, {tau})", aliases=("torch.orgqr",)),
    Op("torch.Tensor.orgqr", "self, input2", "vendored.householder_product({self}, {input2})"),
    *spelled("geqrf", "input", "vendored.geqrf({input})", returns="tuple"),
    *spelled(
        "ormqr",
        "input, input2, input3, left=True, transpose=False",
        "vendored.ormqr({input}, {input2}, {input3}, left={left}, transpose={transpose})",
    ),
    Op(
        "torch.svd_lowrank",
        "A, q=6, niter=2, M=None",
        "vendored.svd_lowrank({rng}, {A}, q={q}, niter={niter}, mean={M})",
        returns="tuple",
        draws=True,
    ),
    Op(
        "torch.pca_lowrank",
        "A, q=None, center=True, niter=2",
        "vendored.pca_lowrank({rng}, {A}, q={q}, center={center}, niter={niter})",
        returns="tuple",
        draws=True,
    ),
]

PROPERTIES = [
    *spelled("det", "A", _det, "linalg.det"),
    # A named tuple in JAX as in torch, in the same order: no helper is needed.
    *spelled("slogdet", "A", "jnp.linalg.slogdet({A})", "linalg.slogdet", returns="tuple"),
    *spelled("logdet", "input", "vendored.logdet({input})"),
    Op(
        f"{L}matrix_rank",
        "A, tol=None, *, atol=None, rtol=None, hermitian=False",
        "vendored.matrix_rank({A}, {tol}, atol={atol}, rtol={rtol}, hermitian={hermitian})",
    ),
    Op(f"{L}cond", "A, p=None", "vendored.cond({A}, {p})"),
    Op(f"{L}norm", "A, ord=None, dim=None, keepdim=False, *, dtype=None", _norm("linalg_norm")),
    Op(
        f"{L}vector_norm",
        "A, ord=2, dim=None, keepdim=False, *, dtype=None",
        lambda call: f"vendored.vector_norm({{A}}, {{ord=2}}, {axis(call)}, keepdim={{keepdim}}, dtype={{dtype}})",
    ),
    Op(
        f"{L}matrix_norm",
        "A, ord='fro', dim=(-2, -1), keepdim=False, *, dtype=None",
        lambda call: f"vendored.matrix_norm({{A}}, {{ord='fro'}}, {axis(call)}, keepdim={{keepdim}}, dtype={{dtype}})",
    ),
    *spelled("matrix_power", "A, n", "jnp.linalg.matrix_power({A}, {n})", "linalg.matrix_power"),
    *spelled("matrix_exp", "A", _matrix_exp, "linalg.matrix_exp"),
    # `torch.linalg.vander` goes up in powers, `torch.vander` goes down.
    Op(f"{L}vander", "x, N=None", "vendored.vander({x}, {N})"),
    Op("torch.vander", "x, N=None, increasing=False", "jnp.vander({x}, {N}, increasing={increasing})"),
]
