"""Joining and splitting
(https://pytorch.org/docs/stable/torch.html#indexing-slicing-joining-mutating-ops).
"""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.ops.calls import may_be_kind
from migrate_agent.tools.rewrite.tables.registry import Call, Op, Refuse


def _chunk(call: Call) -> str:
    """The template of `chunk`: `jnp.split` where every observed shape divides evenly."""
    fact, chunks, dim = call.observed("input"), call.literal("chunks"), call.literal("dim")
    if fact and fact.shapes and isinstance(chunks, int) and isinstance(dim, int):
        # `jnp.split` raises on a remainder; torch makes the last chunk smaller, or gives fewer
        # chunks.
        if all(-len(shape) <= dim < len(shape) and shape[dim] and shape[dim] % chunks == 0 for shape in fact.shapes):
            return "jnp.split({input}, {chunks}, axis={dim})"
    return "vendored.chunk({input}, {chunks}, dim={dim})"


def _tensor_split(call: Call) -> str:
    if may_be_kind(call, "indices_or_sections", "tensor"):
        raise Refuse("where to split is a tensor, so the shapes of the parts depend on values", "dynamic-shape")
    return "jnp.array_split({input}, {indices_or_sections}, axis={dim})"


def _cat(call: Call) -> str:
    """The template of `cat`, with the helper where an empty vector was observed among the tensors, or one of them may be one."""
    shapes = [facts.shapes if facts else () for facts in call.each("tensors")]
    # `torch.cat` skips a one-dimensional tensor without elements; JAX wants equal ranks.
    perhaps_empty = any((0,) in facts for facts in shapes) or call.may_be_empty_vector("tensors")
    if perhaps_empty and any(len(shape) > 1 for facts in shapes for shape in facts):
        return "vendored.cat({tensors}, axis={dim})"
    return "jnp.concatenate({tensors}, axis={dim})"


def _meshgrid(call: Call) -> str:
    # Torch reads a number as a vector of length one.
    if any(fact and () in fact.shapes for fact in call.each("tensors")):
        return "vendored.meshgrid({tensors}, indexing={indexing})"
    if call.count("tensors") > 1 or may_be_kind(call, "tensors", "tensor"):
        # The indexing is written out: torch's default is `ij`, NumPy's is `xy`.
        return "jnp.meshgrid({*tensors}, indexing={indexing='ij'})"
    return "vendored.meshgrid({*tensors}, indexing={indexing})"


JOIN = [
    Op("torch.cat", "tensors, dim=0", _cat, aliases=("torch.concat", "torch.concatenate")),
    Op("torch.stack", "tensors, dim=0", "jnp.stack({tensors}, axis={dim})"),
    Op("torch.hstack", "tensors", "jnp.hstack({tensors})"),
    Op("torch.vstack", "tensors", "jnp.vstack({tensors})", aliases=("torch.row_stack",)),
    Op("torch.dstack", "tensors", "jnp.dstack({tensors})"),
    Op("torch.column_stack", "tensors", "jnp.column_stack({tensors})"),
    Op("torch.block_diag", "*tensors", "jax.scipy.linalg.block_diag({*tensors})"),
    Op("torch.meshgrid", "*tensors, indexing=None", _meshgrid, returns="tuple"),
    Op("torch.cartesian_prod", "*tensors", "vendored.cartesian_prod({*tensors})"),
    Op("torch.combinations", "input, r=2, with_replacement=False", "vendored.combinations({input}, {r}, {with_replacement})"),
]

SPLIT = [
    Op("torch.chunk", "input, chunks, dim=0", _chunk, method="chunk", returns="tuple"),
    Op("torch.unsafe_chunk", "input, chunks, dim=0", _chunk, method="unsafe_chunk", returns="tuple"),
    Op(
        "torch.split",
        "tensor, split_size_or_sections, dim=0",
        "vendored.split({tensor}, {split_size_or_sections}, dim={dim})",
        returns="tuple",
    ),
    Op("torch.Tensor.split", "self, split_size, dim=0", "vendored.split({self}, {split_size}, dim={dim})", returns="tuple"),
    Op(
        "torch.unsafe_split",
        "tensor, split_size, dim=0",
        "vendored.split({tensor}, {split_size}, dim={dim})",
        method="unsafe_split",
        returns="tuple",
    ),
    Op(
        "torch.split_with_sizes",
        "input, split_sizes, dim=0",
        "vendored.split({input}, {split_sizes}, dim={dim})",
        method="split_with_sizes",
        aliases=("torch.split_with_sizes_copy",),
        returns="tuple",
    ),
    Op("torch.tensor_split", "input, indices_or_sections, dim=0", _tensor_split, method="tensor_split", returns="tuple"),
    Op("torch.hsplit", "input, indices_or_sections", "jnp.hsplit({input}, {indices_or_sections})", method="hsplit", returns="tuple"),
    Op("torch.vsplit", "input, indices_or_sections", "jnp.vsplit({input}, {indices_or_sections})", method="vsplit", returns="tuple"),
    Op("torch.dsplit", "input, indices_or_sections", "jnp.dsplit({input}, {indices_or_sections})", method="dsplit", returns="tuple"),
    Op(
        "torch.unbind", "input, dim=0", "jnp.unstack({input}, axis={dim})", method="unbind", aliases=("torch.unbind_copy",), returns="tuple"
    ),
]
