"""Shapes and views
(https://pytorch.org/docs/stable/torch.html#indexing-slicing-joining-mutating-ops).

JAX arrays are immutable, so a view and a copy are the same here; writes through views are the
rules' business.
"""

from __future__ import annotations

import ast

from migrate_agent.tools.rewrite.tables.ops.calls import Refused, axis, is_kind, ndim, sequence, written_elements
from migrate_agent.tools.rewrite.tables.registry import UNKNOWN, Call, Op, Refuse, Template


def _view(call: Call) -> str:
    # `x.view(torch.int32)` reinterprets bits, `x.view(2, 3)` reshapes.
    if call.count("size") == 1 and (is_kind(call, "size", "dtype") or call.text("size").strip("(), ").startswith("jnp.")):
        return "{self}.view({*size})"
    return "{self}.reshape({*size})"


def _is_known_size(node: ast.expr) -> bool:
    """Whether an element of a shape is certainly not -1: a literal, or a size of a tensor."""
    if isinstance(node, ast.Constant):
        return True
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape"


def _expand(tensor: str, size: str) -> Template:
    def to(call: Call) -> str:
        parts = written_elements(call, size)
        # -1 in `expand` keeps the size of an axis; `broadcast_to` has no such sign.
        if (parts and all(map(_is_known_size, parts))) or call.text(size).endswith(".shape") or call.are_amounts(size):
            return f"jnp.broadcast_to({{{tensor}}}, {sequence(call, size) if size == 'sizes' else '{' + size + '}'})"
        return f"vendored.expand({{{tensor}}}, {{{'*' if size == 'sizes' else ''}{size}}})"

    return to


def _flatten(call: Call) -> str:
    start, end = call.literal("start_dim"), call.literal("end_dim")
    # Also right for a number, which torch flattens to one element.
    if start == 0 and end == -1:
        return "{input}.reshape(-1)"
    if UNKNOWN in (start, end) or ndim(call, "input") in (None, 0):
        return "vendored.flatten({input}, {start_dim}, end_dim={end_dim})"
    # `lax.collapse` leaves the end out, torch includes it.
    return "lax.collapse({input}, {start_dim=0})" if end == -1 else f"lax.collapse({{input}}, {{start_dim=0}}, {end + 1})"


def _transpose(first: str, second: str) -> Template:
    def to(call: Call) -> str:
        return "{input}" if ndim(call, "input") == 0 else f"{{input}}.swapaxes({{{first}}}, {{{second}}})"

    return to


def _squeeze(call: Call) -> str:
    # Torch keeps a named axis of another size than 1; JAX raises.
    return "vendored.squeeze({input}, {dim})" if call.given("dim") else "{input}.squeeze()"


def _select(call: Call) -> str:
    dim = call.literal("dim")
    # A long row of colons reads worse than the call.
    if not isinstance(dim, int) or abs(dim) > 4:
        return "jnp.take({input}, {index}, axis={dim})"
    index = [":"] * dim + ["{index}"] if dim >= 0 else ["...", "{index}"] + [":"] * (-dim - 1)
    return f"{{input}}[{', '.join(index)}]"


def _size(call: Call) -> str:
    return "{self}.shape[{dim}]" if call.given("dim") and call.literal("dim") is not None else "{self}.shape"


def _flip(call: Call) -> str:
    return f"jnp.flip({{input}}, axis={axis(call, 'dims')})"


def _flip_method(call: Call) -> str:
    values = call.literal("dims")
    # `x.flip(dims)` may hold one tuple or several integers; only the helper can tell at run time.
    if not isinstance(values, tuple):
        return "vendored.flip({self}, {*dims})"
    only = values[0] if len(values) == 1 else None
    return f"jnp.flip({{self}}, axis={tuple(only)})" if isinstance(only, (list, tuple)) else "jnp.flip({self}, axis={dims})"


def _roll(call: Call) -> str:
    return f"jnp.roll({{input}}, {axis(call, 'shifts')}, axis={axis(call, 'dims')})"


def _repeat(tensor: str, repeats: str) -> Template:
    def to(call: Call) -> str:
        return f"jnp.tile({{{tensor}}}, {sequence(call, repeats)})"

    return to


def _repeat_interleave(call: Call) -> str:
    # With `output_size` the shape is known although the counts are not.
    if not call.given("repeats") or is_kind(call, "repeats", "tensor", "parameter"):
        if not call.given("output_size"):
            return Refused("how often each element is repeated is a tensor, so the shape of the result depends on values", "dynamic-shape")(
                call
            )
    return "jnp.repeat({input}, {repeats}, axis={dim}, total_repeat_length={output_size})"


def _atleast(function: str) -> Template:
    def to(call: Call) -> str:
        if call.count("tensors") > 1:
            return f"tuple({function}({{*tensors}}))"
        # One tensor gives a tensor, a list of tensors gives a tuple.
        many = is_kind(call, "tensors", "list", "tuple") or written_elements(call, "tensors")
        return f"tuple(map({function}, {{*tensors}}))" if many and not is_kind(call, "tensors", "tensor") else f"{function}({{*tensors}})"

    return to


STRIDED = "input, size, stride, storage_offset=None"
MEMORY = "memory layout (strides, storage) has no counterpart in JAX"


def _strided(template: str, tensor: str = "input") -> Template:
    """The template of a function of strides, refused where the tensor may not be contiguous.

    Strides follow from the shape only where the tensor was observed to be contiguous and to fill
    its storage.
    """

    def to(call: Call) -> str:
        fact = call.observed(tensor)
        if fact is None or not fact.whole:
            raise Refuse(f"{MEMORY}, and the tensor was not seen to be contiguous and the whole of its storage")
        return template

    return to


VIEWS = [
    Op("torch.Tensor.view", "self, *size", _view),
    Op("torch.reshape", "input, shape", "{input}.reshape({shape})"),
    Op("torch.Tensor.reshape", "self, *shape", "{self}.reshape({*shape})"),
    Op("torch.view_copy", "input, size", "{input}.reshape({size})", op_db="view_copy"),
    Op("torch.Tensor.view_as", "self, other", "{self}.reshape({other}.shape)"),
    Op("torch.Tensor.reshape_as", "self, other", "{self}.reshape({other}.shape)"),
    Op("torch.flatten", "input, start_dim=0, end_dim=-1", _flatten, method="flatten"),
    Op("torch.ravel", "input", "{input}.ravel()", method="ravel"),
    Op("torch.unflatten", "input, dim, sizes", "vendored.unflatten({input}, {dim}, {sizes})", method="unflatten"),
    Op("torch.squeeze", "input, dim=None", _squeeze, method="squeeze", inplace=True, aliases=("torch.squeeze_copy",)),
    Op(
        "torch.unsqueeze",
        "input, dim",
        "jnp.expand_dims({input}, {dim})",
        method="unsqueeze",
        inplace=True,
        aliases=("torch.unsqueeze_copy",),
    ),
    Op("torch.Tensor.expand", "self, *sizes", _expand("self", "sizes")),
    Op("torch.expand_copy", "input, size", _expand("input", "size")),
    Op("torch.broadcast_to", "input, size", _expand("input", "size"), method="broadcast_to"),
    Op("torch.Tensor.expand_as", "self, other", "jnp.broadcast_to({self}, {other}.shape)"),
    Op("torch.Tensor.sum_to_size", "self, *size", "vendored.sum_to_size({self}, {*size})"),
    Op("torch.atleast_1d", "*tensors", _atleast("jnp.atleast_1d")),
    Op("torch.atleast_2d", "*tensors", _atleast("jnp.atleast_2d")),
    Op("torch.atleast_3d", "*tensors", _atleast("jnp.atleast_3d")),
    Op("torch.broadcast_tensors", "*tensors", "tuple(jnp.broadcast_arrays({*tensors}))", returns="tuple"),
    Op("torch.broadcast_shapes", "*shapes", "jnp.broadcast_shapes({*shapes})", returns="tuple"),
    Op(
        "torch.as_strided",
        STRIDED,
        _strided("vendored.as_strided({input}, {size}, {stride}, {storage_offset})"),
        method="as_strided",
        inplace=True,
        aliases=("torch.as_strided_copy",),
    ),
    Op(
        "torch.as_strided_scatter",
        "input, src, size, stride, storage_offset=None",
        _strided("vendored.as_strided_scatter({input}, {src}, {size}, {stride}, {storage_offset})"),
        method="as_strided_scatter",
    ),
]

AXES = [
    Op("torch.permute", "input, dims", "{input}.transpose({dims})", aliases=("torch.permute_copy",)),
    Op("torch.Tensor.permute", "self, *dims", "{self}.transpose({*dims})"),
    Op(
        "torch.transpose",
        "input, dim0, dim1",
        _transpose("dim0", "dim1"),
        method="transpose",
        inplace=True,
        aliases=("torch.transpose_copy",),
    ),
    Op("torch.swapdims", "input, dim0, dim1", _transpose("dim0", "dim1"), method="swapdims", inplace=True),
    Op("torch.swapaxes", "input, axis0, axis1", _transpose("axis0", "axis1"), method="swapaxes", inplace=True),
    Op("torch.t", "input", "{input}.T", method="t", inplace=True, aliases=("torch.t_copy",)),
    Op("torch.adjoint", "input", "jnp.conj({input}.mT)", method="adjoint"),
    Op("torch.Tensor.T", "self", "{self}.T"),
    Op("torch.Tensor.mT", "self", "{self}.mT"),
    Op("torch.Tensor.H", "self", "jnp.conj({self}.T)"),
    Op("torch.Tensor.mH", "self", "jnp.conj({self}.mT)"),
    Op("torch.movedim", "input, source, destination", "jnp.moveaxis({input}, {source}, {destination})", method="movedim"),
    Op("torch.moveaxis", "input, source, destination", "jnp.moveaxis({input}, {source}, {destination})", method="moveaxis"),
    Op("torch.flip", "input, dims", _flip),
    Op("torch.Tensor.flip", "self, *dims", _flip_method),
    Op("torch.fliplr", "input", "jnp.fliplr({input})", method="fliplr"),
    Op("torch.flipud", "input", "jnp.flipud({input})", method="flipud"),
    Op("torch.roll", "input, shifts, dims=None", _roll, method="roll"),
    Op("torch.rot90", "input, k=1, dims=(0, 1)", "jnp.rot90({input}, {k}, axes={dims})", method="rot90"),
]

PARTS = [
    Op(
        "torch.narrow",
        "input, dim, start, length",
        "lax.dynamic_slice_in_dim({input}, {start}, {length}, axis={dim})",
        method="narrow",
    ),
    Op(
        "torch.narrow_copy",
        "input, dim, start, length",
        "lax.dynamic_slice_in_dim({input}, {start}, {length}, axis={dim})",
        method="narrow_copy",
    ),
    Op("torch.select", "input, dim, index", _select, method="select", aliases=("torch.select_copy",)),
    Op("torch.Tensor.unfold", "self, dimension, size, step", "vendored.sliding_windows({self}, {dimension}, {size}, {step})"),
    Op("torch.unfold_copy", "input, dimension, size, step", "vendored.sliding_windows({input}, {dimension}, {size}, {step})"),
    Op(
        "torch.select_scatter", "input, src, dim, index", "vendored.select_scatter({input}, {src}, {dim}, {index})", method="select_scatter"
    ),
    Op(
        "torch.slice_scatter",
        "input, src, dim=0, start=None, end=None, step=1",
        "vendored.slice_scatter({input}, {src}, {dim}, start={start}, end={end}, step={step})",
        method="slice_scatter",
    ),
]

REPEATS = [
    Op("torch.Tensor.repeat", "self, *repeats", _repeat("self", "repeats")),
    Op("torch.tile", "input, dims", "jnp.tile({input}, {dims})"),
    Op("torch.Tensor.tile", "self, *dims", _repeat("self", "dims")),
    Op("torch.repeat_interleave", "input, repeats=None, dim=None, *, output_size=None", _repeat_interleave, method="repeat_interleave"),
]

IDENTITIES = [
    # Nothing to do for a layout that cannot differ.
    Op("torch.Tensor.contiguous", "self", "{self}"),
    # An array has all of its zeros. What asks for the places of the others (`indices`, `values`) has no row.
    Op("torch.Tensor.to_sparse", "self, *, layout=None", "{self}", samples=("torch.eye(3).to_sparse().to_dense()",)),
    Op("torch.Tensor.to_sparse_csr", "self", "{self}", samples=("torch.eye(3).to_sparse_csr().to_dense()",)),
    Op("torch.Tensor.coalesce", "self", "{self}", samples=("torch.eye(3).to_sparse().coalesce().to_dense()",)),
    # Arrays never change, so that a copy is the array itself.
    Op("torch.clone", "input", "{input}", method="clone", aliases=("torch.alias_copy",)),
    Op("torch.detach", "input", "lax.stop_gradient({input})", method="detach", inplace=True),
    Op("torch.Tensor.data", "self", "lax.stop_gradient({self})"),
    Op("torch.positive", "input", "{input}", method="positive"),
    # Torch delays conjugation and negation; JAX computes them at once, so that nothing is left to
    # do.
    Op("torch.resolve_conj", "input", "{input}", method="resolve_conj"),
    Op("torch.resolve_neg", "input", "{input}", method="resolve_neg"),
]

SIZES = [
    Op("torch.Tensor.size", "self, dim=None", _size, returns="size"),
    Op("torch.Tensor.dim", "self", "{self}.ndim", returns="int"),
    Op("torch.Tensor.ndimension", "self", "{self}.ndim", returns="int"),
    Op("torch.numel", "input", "{input}.size", method="numel", returns="int", samples=("torch.numel(torch.ones(2, 3))",)),
    Op("torch.Tensor.nelement", "self", "{self}.size", returns="int"),
    Op("torch.Tensor.element_size", "self", "{self}.dtype.itemsize", returns="int"),
    # Row-major layout is all that JAX shows of its memory.
    Op("torch.Tensor.is_contiguous", "self", "True", returns="bool"),
    Op("torch.Tensor.stride", "self, dim=None", _strided("vendored.contiguous_strides({self}, {dim})", "self"), returns="tuple"),
    Op("torch.Tensor.storage_offset", "self", Refused(MEMORY), returns="int"),
    Op("torch.Tensor.data_ptr", "self", Refused(MEMORY), returns="int"),
]
