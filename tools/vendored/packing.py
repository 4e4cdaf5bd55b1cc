"""Batches of sequences of several lengths (https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pack_padded_sequence.html)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PackedSequence:
    """Sequences (L, N, …) with zeros after each one's end, and their lengths (N,).

    PyTorch leaves the padding out. Here it stays, so that shapes do not depend on lengths, and recurrent layers do not step over it.
    """

    padded: jax.Array
    lengths: jax.Array
    sizes: tuple[int, ...] | None = field(default=None, metadata={"static": True})
    """The lengths, where they were given as numbers of Python or NumPy."""

    @property
    def data(self) -> jax.Array:
        """The steps of all sequences without padding (sum of lengths, …) in PyTorch's order: step by step, longer sequences first. Raises `ValueError`
        where the lengths were given as an array, on whose values no shape can depend."""
        if self.sizes is None:
            raise ValueError("the number of packed steps cannot follow lengths in an array: give them as numbers")
        order = np.argsort(-np.asarray(self.sizes), kind="stable")
        steps, rows = np.nonzero(np.arange(max(self.sizes))[:, None] < np.asarray(self.sizes)[order])
        return self.padded[steps, order[rows]]

    @property
    def batch_sizes(self) -> jax.Array:
        """How many sequences each step has (L,)."""
        return jnp.sum(jnp.arange(max(self.sizes or (len(self.padded),)))[:, None] < self.lengths, axis=1)


def padding_mask(lengths: jax.Array, like: jax.Array) -> jax.Array:
    """Whether a step of (L, N, …) belongs to its sequence: bools that broadcast over the other axes."""
    mask = jnp.arange(like.shape[0])[:, None] < lengths
    return mask.reshape(*mask.shape, *(1 for _ in like.shape[2:]))


def pack_padded_sequence(
    input: jax.Array, lengths: jax.Array | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Sequences that recurrent layers step over to each one's own end, in the order in which they were given. Without `enforce_sorted` sequences beyond
    the last length are left out, as in PyTorch."""
    input = input.swapaxes(0, 1) if batch_first else input
    sizes = None if isinstance(lengths, jax.Array) else tuple(int(length) for length in lengths)
    lengths = jnp.asarray(lengths, int)
    input = input if enforce_sorted else input[:, : len(lengths)]
    return PackedSequence(jnp.where(padding_mask(lengths, input), input, 0), lengths, sizes)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[jax.Array, jax.Array]:
    """The sequences as an array of `total_length` steps (default: of as many as the longest has) and their lengths.

    With lengths in an array, shapes cannot follow the longest. Then there are as many steps as were packed, and all is NaN where that is not as
    many as the longest has: give `total_length` where batches are padded further. Raises `ValueError` for integers with such lengths.
    https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pad_packed_sequence.html
    """
    padded, lengths = sequence.padded, sequence.lengths
    padded = jnp.where(padding_mask(lengths, padded), padded, jnp.asarray(padding_value, padded.dtype))
    if total_length is None and sequence.sizes is None:
        padded = nan_unless_filled(padded, lengths)
    steps = total_length or max(sequence.sizes or (len(padded),))
    after = [(0, max(0, steps - len(padded))), *((0, 0) for _ in padded.shape[1:])]
    padded = jnp.pad(padded, after, constant_values=padding_value)[:steps]
    return padded.swapaxes(0, 1) if batch_first else padded, lengths


def nan_unless_filled(padded: jax.Array, lengths: jax.Array) -> jax.Array:
    """(L, N, …) as it is where the longest sequence has L steps; NaN where none has."""
    if not jnp.issubdtype(padded.dtype, jnp.inexact):
        raise ValueError("shapes cannot follow the longest of the packed sequences: give pad_packed_sequence a total_length")
    return jnp.where(jnp.max(lengths) == len(padded), padded, jnp.nan)


def pad_sequence(
    sequences: Sequence[jax.Array], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> jax.Array:
    """Arrays (L, …) as one (longest L, N, …), or (N, longest L, …) with `batch_first`.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pad_sequence.html
    """
    longest = max(len(sequence) for sequence in sequences)
    axis = 0 if batch_first else 1
    filled = []
    for sequence in sequences:
        missing = longest - len(sequence)
        before = (missing, 0) if padding_side == "left" else (0, missing)
        filled.append(jnp.pad(sequence, [before, *((0, 0) for _ in sequence.shape[1:])], constant_values=padding_value))
    return jnp.stack(filled, axis)


def pack_sequence(sequences: Sequence[jax.Array], enforce_sorted: bool = True) -> PackedSequence:
    """Arrays (L, …) packed. https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pack_sequence.html"""
    padded = pad_sequence(sequences)
    sizes = tuple(len(sequence) for sequence in sequences)
    return PackedSequence(padded, jnp.asarray(sizes, int), sizes)
