"""Embedding tables of Flax, in the width of the state that is loaded. Used inside the sandbox, on the candidate's side."""

from __future__ import annotations

from typing import Any

from flax import nnx
from flax.nnx.nn import dtypes


def promote_together(arrays: Any, *, dtype: Any = None, **options: Any) -> Any:
    """Flax's `promote_dtype` for layers that were given no dtype."""
    return dtypes.promote_dtype(arrays, dtype=None, **options)


def follow_tables(module: nnx.Module) -> None:
    """Have each `nnx.Embed` that was given no dtype compute in that of its table, as Flax's other layers do.

    It keeps the dtype that the table had when it was made, so that a table in bfloat16 would be cast to it. Whoever wants a model in another width makes
    it in that width (`param_dtype`).
    """
    for _, node in nnx.iter_graph(module):
        if type(node) is nnx.Embed and node.dtype == node.embedding.get_value().dtype and node.promote_dtype is dtypes.promote_dtype:
            node.promote_dtype = promote_together
