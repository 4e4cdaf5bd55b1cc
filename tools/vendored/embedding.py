"""Embedding tables with PyTorch's semantics."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax

from migrate_agent.tools.vendored.numeric import cast_parameters, replace_value


def embedding(
    input: jax.Array,
    weight: jax.Array,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> jax.Array:
    """Rows of `weight` (n, d) for the integers `input` (…) → (…, d); no gradient flows to row `padding_idx`.

    Rows longer than `max_norm` are shortened in the result (PyTorch shortens them in the table as well: `tracked_embedding`).
    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.embedding.html
    """
    if max_norm is not None:
        weight = renormalised(weight, max_norm, norm_type)
    if scale_grad_by_freq:
        counts = jnp.zeros(weight.shape[0], weight.dtype).at[input.reshape(-1)].add(1)
        share = 1 / jnp.maximum(counts, 1)[:, None]
        weight = weight * share + lax.stop_gradient(weight * (1 - share))
    rows = jnp.take(weight, input, axis=0)
    if padding_idx is None:
        return rows
    is_padding = (input == padding_idx % weight.shape[0])[..., None]
    return jnp.where(is_padding, lax.stop_gradient(rows), rows)


def renormalised(weight: jax.Array, max_norm: float, norm_type: float) -> jax.Array:
    """`weight` with the rows whose norm exceeds `max_norm` scaled down to it, as a constant.

    https://docs.pytorch.org/docs/stable/generated/torch.renorm.html
    """
    fixed = lax.stop_gradient(weight)
    norms = jnp.linalg.norm(fixed, ord=norm_type, axis=1, keepdims=True)
    scaled = fixed * jnp.where(norms > max_norm, max_norm / (norms + 1e-7), 1)
    return weight + (scaled - fixed)


def tracked_embedding(
    input: jax.Array,
    weight: nnx.Variable[jax.Array],
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
) -> jax.Array:
    """`embedding` that also leaves the rows it has shortened to `max_norm` in the table `weight` (n, d)."""
    if max_norm is not None:
        shorten(weight, input, max_norm, norm_type)
    return embedding(input, weight[...], padding_idx, scale_grad_by_freq=scale_grad_by_freq)


def shorten(weight: nnx.Variable[jax.Array], input: jax.Array, max_norm: float, norm_type: float) -> None:
    """Scale the rows of `weight` (n, d) that `input` names down to `max_norm`, in place.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.Embedding.html
    """
    named = jnp.zeros(weight.shape[0], bool).at[input.reshape(-1)].set(True)
    weight[...] = jnp.where(named[:, None], renormalised(weight[...], max_norm, norm_type), weight[...])


class EmbeddingTable(nnx.Embed):
    """The table `embedding` (n, d) of the embedding layers; `tied` (d, n) in its place once it shares a linear layer's kernel.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.Embedding.html
    """

    embedding: Any

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None, *, rngs: nnx.Rngs) -> None:
        super().__init__(num_embeddings, embedding_dim, embedding_init=jax.nn.initializers.normal(1.0), rngs=rngs)
        self.embedding_dim = embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.tied: Any = nnx.data(None)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            self.weight = self.weight.at[self.padding_idx].set(0)

    @property
    def weight(self) -> jax.Array:
        """The table (n, d). Assigning an array sets it; assigning a variable shares that variable."""
        return self.embedding[...] if self.embedding is not None else self.tied[...].T

    @weight.setter
    def weight(self, value: Any) -> None:
        if isinstance(value, nnx.Variable):
            own = not getattr(value, "features_last", False)
            self.embedding, self.tied = (value, None) if own else (None, value)
        elif self.embedding is not None:
            replace_value(self.embedding, value)
        else:
            replace_value(self.tied, value.T)


class Embedding(EmbeddingTable):
    """Integers (…) → (…, embedding_dim).

    https://docs.pytorch.org/docs/stable/generated/torch.nn.Embedding.html
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: jax.Array | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        rngs: nnx.Rngs,
    ) -> None:
        super().__init__(num_embeddings, embedding_dim, padding_idx, rngs=rngs)
        self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse = max_norm, norm_type, scale_grad_by_freq, sparse
        if _weight is not None:
            self.weight = _weight
        cast_parameters(self, dtype)
        if _freeze:
            self.embedding = nnx.Variable(self.embedding[...])

    def __call__(self, input: jax.Array) -> jax.Array:
        if self.max_norm is not None and self.embedding is not None:
            return tracked_embedding(input, self.embedding, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq)
        weight = self.embedding[...] if self.tied is None else self.tied[...].T
        return embedding(input, weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq)


def pretrained_embedding(
    embeddings: jax.Array,
    freeze: bool = True,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
    *,
    rngs: nnx.Rngs,
) -> Embedding:
    """An embedding layer that starts with this table (n, d); not trained where `freeze`.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.Embedding.html#torch.nn.Embedding.from_pretrained
    """
    count, width = embeddings.shape
    return Embedding(count, width, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, embeddings, freeze, rngs=rngs)


def embedding_bag(
    input: jax.Array,
    weight: jax.Array,
    offsets: jax.Array | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: jax.Array | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> jax.Array:
    """Sums, means or maxima of the rows of `weight` over bags: `input` (bags, size), or (n,) split at `offsets` (bags,) → (bags, d).

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.embedding_bag.html
    """
    if input.ndim == 2:
        bags, bag = input.shape[0], jnp.repeat(jnp.arange(input.shape[0]), input.shape[1])
        input = input.reshape(-1)
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    elif offsets is None:
        raise ValueError("offsets has to be a 1D array where input is 1D")
    else:
        bags = offsets.shape[0] - include_last_offset
        bag = jnp.searchsorted(offsets[:bags], jnp.arange(input.shape[0]), side="right") - 1
    rows = embedding(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    keep = jnp.ones(input.shape, bool) if padding_idx is None else input != padding_idx % weight.shape[0]
    return reduce_bags(rows, keep, bag, bags, mode)


def reduce_bags(rows: jax.Array, keep: jax.Array, bag: jax.Array, bags: int, mode: str) -> jax.Array:
    """The sum, mean or maximum of the kept `rows` (n, d) of each bag → (bags, d); zero for an empty bag."""
    counts = jax.ops.segment_sum(keep.astype(rows.dtype), bag, bags)[:, None]
    if mode == "max":
        largest = jax.ops.segment_max(jnp.where(keep[:, None], rows, -jnp.inf), bag, bags)
        return jnp.where(counts > 0, largest, 0)
    total = jax.ops.segment_sum(jnp.where(keep[:, None], rows, 0), bag, bags)
    return total / jnp.maximum(counts, 1) if mode == "mean" else total


class EmbeddingBag(EmbeddingTable):
    """Bags of integers → one row each.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.EmbeddingBag.html
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: jax.Array | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
        *,
        rngs: nnx.Rngs,
    ) -> None:
        super().__init__(num_embeddings, embedding_dim, padding_idx, rngs=rngs)
        self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse = max_norm, norm_type, scale_grad_by_freq, sparse
        self.mode, self.include_last_offset = mode, include_last_offset
        if _weight is not None:
            self.weight = _weight
        cast_parameters(self, dtype)

    def __call__(self, input: jax.Array, offsets: jax.Array | None = None, per_sample_weights: jax.Array | None = None) -> jax.Array:
        if self.max_norm is not None and self.embedding is not None:
            shorten(self.embedding, input, self.max_norm, self.norm_type)
        return embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )
