"""Embedding tables (https://docs.pytorch.org/docs/stable/nn.html#sparse-layers)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Layer

TABLE = {"weight": "{self}.embedding"}
# No plain form: `nnx.Embed` keeps the dtype that its table had when it was made, and casts to it whatever is loaded later.

ROWS = (
    Layer(
        "torch.nn.Embedding",
        "num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, "
        "sparse=False, _weight=None, _freeze=False, device=None, dtype=None",
        "Embedding",
        params=TABLE,
        samples=("7, 4",),
    ),
    Layer(
        "torch.nn.EmbeddingBag",
        "num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode='mean', "
        "sparse=False, _weight=None, include_last_offset=False, padding_idx=None, device=None, dtype=None",
        "EmbeddingBag",
        params=TABLE,
        samples=("7, 4",),
    ),
)
