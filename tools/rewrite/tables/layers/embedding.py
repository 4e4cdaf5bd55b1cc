"""Embedding tables (https://docs.pytorch.org/docs/stable/nn.html#sparse-layers)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Call, Layer

TABLE = {"weight": "{self}.embedding"}
OPTIONS = ("padding_idx", "max_norm", "_weight", "dtype")


def plain_embedding(call: Call) -> str:
    """`nnx.Embed` with torch's initial values; "" where some of its rows are special, or it is to have a dtype."""
    plain = all(not call.given(option) or call.literal(option) is None for option in OPTIONS)
    plain = plain and all(call.literal(option) is False for option in ("scale_grad_by_freq", "_freeze"))
    options = "embedding_init=nnx.initializers.normal(1.0), rngs={rngs}"
    return f"nnx.Embed({{num_embeddings}}, {{embedding_dim}}, {options})" if plain else ""


ROWS = (
    Layer(
        "torch.nn.Embedding",
        "num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, "
        "sparse=False, _weight=None, _freeze=False, device=None, dtype=None",
        "Embedding",
        params=TABLE,
        samples=("7, 4",),
        plain=plain_embedding,
        plain_class="nnx.Embed",
        plain_reads={"weight": "{self}.embedding[...]", "embedding_dim": "{self}.features"},
        not_plain=("padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse", "reset_parameters"),
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
