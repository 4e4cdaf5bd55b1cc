"""Indexing functions (https://pytorch.org/docs/stable/torch.html#indexing-slicing-joining-mutating-ops)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.ops.calls import is_bool, is_integral, is_kind, ndim, spelled
from migrate_agent.tools.rewrite.tables.registry import Call, Op, Template


def _gather(call: Call) -> str:
    """The template of `gather`: JAX's own function where the other axes were observed to agree, and are not each up to the caller."""
    tensor, index, dim = call.observed("input"), call.observed("index"), call.literal("dim")
    # `take_along_axis` wants the other axes of equal size; torch lets the index be smaller.
    is_free = call.is_handed("input") and call.is_handed("index")
    if not is_free and tensor and index and tensor.shapes and isinstance(dim, int) and len(tensor.shapes) == len(index.shapes):
        pairs = list(zip(tensor.shapes, index.shapes, strict=True))
        if all(len(a) == len(b) and len(a) and _without(a, dim) == _without(b, dim) for a, b in pairs):
            return "jnp.take_along_axis({input}, {index}, axis={dim})"
    return "vendored.gather({input}, {dim}, {index})"


def _without(shape: tuple[int, ...], dim: int) -> list[int]:
    return [size for i, size in enumerate(shape) if i != dim % len(shape)]


def _at(update: str, helper: str) -> Template:
    """The template of an update along an axis: `x.at[:, index].<update>` where the axis is a literal."""

    def to(call: Call) -> str:
        dim, axes = call.literal("dim"), ndim(call, "input")
        # `.at[…].add` refuses booleans, and a factor `alpha` has no place in `.at[…].add`.
        if isinstance(dim, int) and axes and not is_bool(call, "input") and not (call.given("alpha") and call.literal("alpha") != 1):
            leading = ":, " * (dim % axes)
            return f"{{input}}.at[{leading}{{index}}].{update}"
        return f"vendored.{helper}"

    return to


def _scatter(call: Call) -> str:
    value = "{value}" if call.given("value") else "{src}"
    return f"vendored.scatter({{input}}, {{dim}}, {{index}}, {value}, reduce={{reduce}})"


def _index_select(call: Call) -> str:
    return (
        # Torch takes a number as a tensor with one element; `jnp.take` has no axis to take from.
        "vendored.index_select({input}, {dim}, {index})" if ndim(call, "input") in (0, None) else "jnp.take({input}, {index}, axis={dim})"
    )


def _take_along_dim(call: Call) -> str:
    if call.given("dim") and call.literal("dim") is not None:
        return "vendored.take_along_dim({input}, {indices}, {dim})"
    # Without an axis torch flattens the input and the index.
    return "jnp.take({input}, {indices}.reshape(-1))"


def _index_put(call: Call) -> str:
    accumulate = call.literal("accumulate")
    # A list as an index means something else to NumPy, hence `tuple(…)`.
    if isinstance(accumulate, bool) and not (accumulate and is_bool(call, "input")):
        index = "{indices}" if is_kind(call, "indices", "tuple") else "tuple({indices})"
        return f"{{input}}.at[{index}].{'add' if accumulate else 'set'}({{values}})"
    return "vendored.index_put({input}, {indices}, {values}, {accumulate})"


def _masked_fill(call: Call) -> str:
    """The template of `masked_fill`, whose result keeps the dtype of the input."""
    tensor, value = call.observed("input"), call.observed("value")
    # `jnp.where` promotes: an int64 tensor filled with -1.5 would become a float.
    kinds = set(value.kinds) if value else {"float"}
    fits = kinds <= {"bool"} or not is_integral(call, "input") or (kinds <= {"int", "bool"} and not is_bool(call, "input"))
    same_shape = not (tensor and value and value.dtypes) or set(value.dtypes) == set(tensor.dtypes)
    return "jnp.where({mask}, {value}, {input})" + ("" if fits and same_shape else ".astype({input}.dtype)")


GATHER = [
    *spelled("gather", "input, dim, index, *, sparse_grad=False", _gather),
    *spelled("take_along_dim", "input, indices, dim=None", _take_along_dim),
    *spelled("take", "input, index", "jnp.take({input}, {index})"),
    *spelled("index_select", "input, dim, index", _index_select),
]

SCATTER = [
    *spelled("scatter", "input, dim, index, src=None, *, value=None, reduce=None", _scatter, inplace=True),
    *spelled("scatter_add", "input, dim, index, src", "vendored.scatter_add({input}, {dim}, {index}, {src})", inplace=True),
    *spelled(
        "scatter_reduce",
        "input, dim, index, src, reduce, *, include_self=True",
        "vendored.scatter_reduce({input}, {dim}, {index}, {src}, {reduce}, include_self={include_self})",
        inplace=True,
    ),
    *spelled(
        "index_add",
        "input, dim, index, source, *, alpha=1",
        _at("add({source})", "index_add({input}, {dim}, {index}, {source}, alpha={alpha})"),
        inplace=True,
    ),
    *spelled(
        "index_copy", "input, dim, index, source", _at("set({source})", "index_copy({input}, {dim}, {index}, {source})"), inplace=True
    ),
    *spelled("index_fill", "input, dim, index, value", _at("set({value})", "index_fill({input}, {dim}, {index}, {value})"), inplace=True),
    *spelled(
        "index_reduce",
        "input, dim, index, source, reduce, *, include_self=True",
        "vendored.index_reduce({input}, {dim}, {index}, {source}, {reduce}, include_self={include_self})",
        inplace=True,
    ),
    *spelled("index_put", "input, indices, values, accumulate=False", _index_put, inplace=True),
    *spelled("put", "input, index, source, accumulate=False", "vendored.put({input}, {index}, {source}, {accumulate})", inplace=True),
]

MASKED = [
    *spelled("masked_fill", "input, mask, value", _masked_fill, inplace=True),
    *spelled("masked_scatter", "input, mask, source", "vendored.masked_scatter({input}, {mask}, {source})", inplace=True),
]

DIAGONALS = [
    *spelled("tril", "input, diagonal=0", "jnp.tril({input}, {diagonal})", inplace=True),
    *spelled("triu", "input, diagonal=0", "jnp.triu({input}, {diagonal})", inplace=True),
    *spelled("diag", "input, diagonal=0", "jnp.diag({input}, {diagonal})"),
    *spelled("diagflat", "input, offset=0", "jnp.diagflat({input}, {offset})"),
    *spelled(
        "diagonal",
        "input, offset=0, dim1=0, dim2=1",
        "jnp.diagonal({input}, offset={offset}, axis1={dim1}, axis2={dim2})",
    ),
    Op("torch.diagonal_copy", "input, offset=0, dim1=0, dim2=1", "jnp.diagonal({input}, offset={offset}, axis1={dim1}, axis2={dim2})"),
    Op(
        "torch.linalg.diagonal",
        "A, *, offset=0, dim1=-2, dim2=-1",
        "jnp.diagonal({A}, offset={offset=0}, axis1={dim1=-2}, axis2={dim2=-1})",
    ),
    *spelled("diag_embed", "input, offset=0, dim1=-2, dim2=-1", "vendored.diag_embed({input}, offset={offset}, dim1={dim1}, dim2={dim2})"),
    *spelled(
        "diagonal_scatter",
        "input, src, offset=0, dim1=0, dim2=1",
        "vendored.diagonal_scatter({input}, {src}, offset={offset}, dim1={dim1}, dim2={dim2})",
    ),
    *spelled("unravel_index", "indices, shape", "jnp.unravel_index({indices}, {shape})", returns="tuple"),
]
