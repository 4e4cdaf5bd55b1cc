"""Sorting and selection (https://pytorch.org/docs/stable/torch.html#comparison-ops)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.ops.calls import Refused, ndim, spelled
from migrate_agent.tools.rewrite.tables.registry import Call, Op, Refuse, Template

DYNAMIC = "the shape of the result depends on values: use a mask with `jnp.where`, or a fixed size"


def _argsort(call: Call) -> str:
    # Torch sorts a number along `dim=-1`; JAX has no axis there.
    return "jnp.zeros_like({input}, int)" if ndim(call, "input") == 0 else "jnp.argsort({input}, axis={dim}, descending={descending})"


def _where(call: Call) -> str:
    # With the condition alone `where` is `nonzero`.
    if not call.given("input"):
        raise Refuse(DYNAMIC, "dynamic-shape")
    return "jnp.where({condition}, {input}, {other})"


def _bucketize(call: Call) -> str:
    right = call.literal("right")
    side = f"'{'right' if right else 'left'}'" if isinstance(right, bool) else "'right' if {right} else 'left'"
    # `jnp.searchsorted` gives int32 even under x64.
    cast = ".astype(jnp.int32)" if call.literal("out_int32") is True else ".astype(int)"
    return f"jnp.searchsorted({{boundaries}}, {{input}}, side={side}){cast}"


def _bincount(call: Call) -> str:
    """The template of `bincount`: of positions along an axis none is beyond `minlength`, which says how many there are."""
    if not call.given("minlength") or not call.is_position("input"):
        raise Refuse(DYNAMIC, "dynamic-shape")
    weights = "weights={weights}, " if call.given("weights") else ""
    return f"jnp.bincount({{input}}, {weights}length={{minlength}})"


def _of_known(helper: str) -> Template:
    """Of numbers that are known while tracing, how many there are is known too."""

    def to(call: Call) -> str:
        if not call.is_known("input") or call.literal("dim") is not None:
            raise Refuse(DYNAMIC, "dynamic-shape")
        return f"vendored.{helper}({{input}}, return_inverse={{return_inverse}}, return_counts={{return_counts}})"

    return to


SORT = [
    *spelled(
        "sort",
        "input, dim=-1, descending=False, stable=False",
        # Values and indices must come from one stable sort, so that equal values agree with torch.
        "vendored.sort({input}, {dim=-1}, descending={descending})",
        returns="tuple",
    ),
    *spelled("argsort", "input, dim=-1, descending=False, stable=False", _argsort),
    *spelled("msort", "input", "jnp.sort({input}, axis=0)"),
    *spelled(
        "topk",
        "input, k, dim=-1, largest=True, sorted=True",
        "vendored.topk({input}, {k}, {dim=-1}, largest={largest})",
        returns="tuple",
    ),
    Op(
        "torch.searchsorted",
        "sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None",
        "vendored.searchsorted({sorted_sequence}, {input}, out_int32={out_int32}, right={right}, side={side}, sorter={sorter})",
    ),
    *spelled("bucketize", "input, boundaries, *, out_int32=False, right=False", _bucketize),
]

SELECT = [
    Op("torch.where", "condition, input=None, other=None", _where),
    Op("torch.Tensor.where", "self, condition, other", "jnp.where({condition}, {self}, {other})"),
    *spelled("nonzero", "input, *, as_tuple=False", Refused(DYNAMIC, "dynamic-shape")),
    *spelled("argwhere", "input", Refused(DYNAMIC, "dynamic-shape")),
    *spelled("masked_select", "input, mask", Refused(DYNAMIC, "dynamic-shape")),
    *spelled("unique", "input, sorted=True, return_inverse=False, return_counts=False, dim=None", _of_known("unique")),
    *spelled("unique_consecutive", "input, return_inverse=False, return_counts=False, dim=None", _of_known("unique_consecutive")),
    *spelled("nonzero_static", "input, *, size, fill_value=-1", "vendored.nonzero_static({input}, {size}, {fill_value=-1})"),
]

COUNTS = [
    *spelled("bincount", "input, weights=None, minlength=0", _bincount),
    *spelled(
        "histogram",
        "input, bins, *, range=None, weight=None, density=False",
        "vendored.histogram({input}, {bins}, range={range}, weight={weight}, density={density})",
        returns="tuple",
    ),
    Op(
        "torch.histogramdd",
        "input, bins, range=None, weight=None, density=False",
        "vendored.histogramdd({input}, {bins}, range={range}, weight={weight}, density={density})",
        returns="tuple",
    ),
    *spelled("histc", "input, bins=100, min=0, max=0", "vendored.histc({input}, {bins=100}, {min=0}, {max=0})"),
]
