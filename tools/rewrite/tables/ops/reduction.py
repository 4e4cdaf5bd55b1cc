"""Reductions (https://pytorch.org/docs/stable/torch.html#reduction-ops)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.ops.calls import axis, is_kind, may_be_kind, ndim, reduction_axis, spelled
from migrate_agent.tools.rewrite.tables.registry import UNKNOWN, Call, Op, Refuse, Template


def _reduce(function: str, extra: str = "") -> Template:
    def to(call: Call) -> str:
        fact = call.observed("input")
        unsigned = fact is not None and set(fact.dtypes) == {"uint8"} and not call.given("dtype")  # torch sums in int64
        dtype = ", dtype=int" if unsigned and function in ("jnp.sum", "jnp.prod") else extra
        whole = function in ("jnp.all", "jnp.any") and ndim(call, "input") != 0  # for these no axes are no axes
        dim = axis(call) if whole else reduction_axis(call)
        return f"{function}({{input}}, axis={dim}{dtype}, keepdims={{keepdim}})"

    return to


def _extremum(name: str) -> Template:
    """The template of `max` or `min`: over everything, over one axis with indices, or of two tensors."""
    pairwise = {"max": "maximum", "min": "minimum"}[name]

    def to(call: Call) -> str:
        # By keyword `other` is unambiguous; by position it lands in `dim`, see below.
        if call.given("other"):
            return f"jnp.{pairwise}({{input}}, {{other}})"
        if not call.given("dim"):
            # Over everything torch gives the value alone, without indices.
            return f"jnp.{name}({{input}})"
        if may_be_kind(call, "dim", "tensor", "parameter"):
            return f"jnp.{pairwise}({{input}}, {{dim}})"
        if isinstance(call.literal("dim"), int) or is_kind(call, "dim", "int"):
            return f"vendored.{name}_with_indices({{input}}, {{dim}}, keepdim={{keepdim}})"
        # The two meanings differ in shape and in what is returned; a guess could pass unnoticed.
        raise Refuse(f"cannot tell whether `{call.text('dim')}` is an axis or a tensor", "unknown-kind")

    return to


def _correction(call: Call) -> tuple[str, str]:
    """The axis and `ddof` of a variance. In `var(input, False)` the argument `dim` holds `unbiased`."""
    # `True` is an `int` to Python, so that this test stands before any question about axes.
    if isinstance(call.literal("dim"), bool) or is_kind(call, "dim", "bool"):
        return "None", "int({dim})"
    dim = reduction_axis(call)
    if call.given("correction") and call.literal("correction") is not None:
        return dim, "{correction}"
    unbiased = call.literal("unbiased")
    if unbiased is UNKNOWN:
        return dim, "int({unbiased})"
    # Torch divides by n - 1 unless told otherwise, NumPy by n.
    return dim, "0" if unbiased is False else "1"


def _variance(function: str) -> Template:
    def to(call: Call) -> str:
        dim, correction = _correction(call)
        dim = {"None": "", "{dim}": "axis={dim}, "}.get(dim, f"axis={dim}, ")
        correction = {"int({dim})": str(int(call.literal("dim"))) if isinstance(call.literal("dim"), bool) else correction}.get(
            correction, correction
        )
        return f"{function}({{input}}, {dim}ddof={correction}, keepdims={{keepdim}})"

    return to


def _arg(function: str) -> Template:
    def to(call: Call) -> str:
        return f"{function}({{input}}, axis={reduction_axis(call)}, keepdims={{keepdim}})"

    return to


def _ordered(name: str) -> Template:
    """The template of `median` and `nanmedian`: with an axis they give indices too."""

    def to(call: Call) -> str:
        if call.given("dim"):
            return f"vendored.{name}_with_indices({{input}}, {{dim}}, keepdim={{keepdim}})"
        return f"vendored.{name}({{input}})"

    return to


def _quantile(function: str) -> Template:
    def to(call: Call) -> str:
        fact = call.observed("input")
        if fact and fact.shapes and not any(fact.shapes):  # a number has no axis, nor keeps one
            return f"{function}({{input}}, jnp.asarray({{q}}), method={{interpolation='linear'}})"
        keywords = f"axis={reduction_axis(call)}, method={{interpolation='linear'}}, keepdims={{keepdim}}"
        return f"{function}({{input}}, jnp.asarray({{q}}), {keywords})"

    return to


REDUCE = "input, dim=None, keepdim=False"
REDUCE_DTYPE = REDUCE + ", *, dtype=None"
SPREAD = "input, dim=None, unbiased=True, keepdim=False, *, correction=None"
QUANTILE = "input, q, dim=None, keepdim=False, *, interpolation='linear'"

SUMS = [
    *spelled("sum", REDUCE_DTYPE, _reduce("jnp.sum", ", dtype={dtype}")),
    *spelled("nansum", REDUCE_DTYPE, _reduce("jnp.nansum", ", dtype={dtype}")),
    *spelled("mean", REDUCE_DTYPE, _reduce("jnp.mean", ", dtype={dtype}")),
    *spelled("nanmean", REDUCE_DTYPE, _reduce("jnp.nanmean", ", dtype={dtype}")),
    *spelled("prod", REDUCE_DTYPE, _reduce("jnp.prod", ", dtype={dtype}")),
    *spelled("var", SPREAD, _variance("jnp.var")),
    # The gradient of a standard deviation of 0 is a NaN in JAX and 0 in torch.
    *spelled("std", SPREAD, _variance("vendored.std")),
    Op("torch.var_mean", SPREAD, _variance("vendored.var_mean"), returns="tuple"),
    Op("torch.std_mean", SPREAD, _variance("vendored.std_mean"), returns="tuple"),
    *spelled("logsumexp", "input, dim, keepdim=False", _reduce("jax.nn.logsumexp"), "special.logsumexp"),
    *spelled("count_nonzero", "input, dim=None", lambda call: f"jnp.count_nonzero({{input}}, axis={reduction_axis(call)})"),
    *spelled("all", REDUCE, _reduce("jnp.all")),
    *spelled("any", REDUCE, _reduce("jnp.any")),
]

EXTREMA = [
    *spelled("max", "input, dim=None, keepdim=False, *, other=None", _extremum("max")),
    *spelled("min", "input, dim=None, keepdim=False, *, other=None", _extremum("min")),
    # The gradient is shared by equal maxima in both; `max` over an axis gives it to one of them.
    *spelled("amax", "input, dim=(), keepdim=False", _reduce("jnp.max")),
    *spelled("amin", "input, dim=(), keepdim=False", _reduce("jnp.min")),
    *spelled("aminmax", "input, *, dim=None, keepdim=False", "vendored.aminmax({input}, {dim}, keepdim={keepdim})", returns="tuple"),
    *spelled("argmax", REDUCE, _arg("jnp.argmax")),
    *spelled("argmin", REDUCE, _arg("jnp.argmin")),
    # Of an even count torch takes the lower of the two middle values, NumPy their mean.
    *spelled("median", REDUCE, _ordered("median")),
    *spelled("nanmedian", REDUCE, _ordered("nanmedian")),
    *spelled("mode", "input, dim=-1, keepdim=False", "vendored.mode({input}, {dim}, keepdim={keepdim})", returns="tuple"),
    *spelled(
        "kthvalue", "input, k, dim=-1, keepdim=False", "vendored.kthvalue({input}, {k}, {dim=-1}, keepdim={keepdim})", returns="tuple"
    ),
    *spelled("quantile", QUANTILE, _quantile("jnp.quantile")),
    *spelled("nanquantile", QUANTILE, _quantile("jnp.nanquantile")),
]

NORMS = [
    *spelled(
        "norm",
        "input, p='fro', dim=None, keepdim=False, dtype=None",
        "vendored.norm({input}, {p}, {dim}, keepdim={keepdim}, dtype={dtype})",
    ),
    *spelled("dist", "input, other, p=2", "vendored.norm({input} - {other}, {p})"),
    *spelled("renorm", "input, p, dim, maxnorm", "vendored.renorm({input}, {p}, {dim}, {maxnorm})", inplace=True),
    *spelled("trace", "input", "jnp.trace({input})"),
    *spelled(
        "cov",
        "input, *, correction=1, fweights=None, aweights=None",
        "vendored.cov({input}, correction={correction}, fweights={fweights}, aweights={aweights})",
    ),
    *spelled("corrcoef", "input", "jnp.corrcoef({input})"),
]
