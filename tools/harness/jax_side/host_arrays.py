"""Arguments that are NumPy's and stay so: constants of the programs that are traced with them, as a user's arrays on the host are."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import jax
import numpy as np

from migrate_agent.tools.harness.common.input_sampling import Array


class HostArray:
    """An array of NumPy among the leaves of a call. For JAX it has no leaves: it is part of the structure, so that `jit` compiles anew for each value."""

    def __init__(self, array: Array) -> None:
        self.array = np.array(array)
        self.shape, self.dtype = self.array.shape, self.array.dtype
        self.digest = sha256(repr((self.shape, str(self.dtype))).encode() + self.array.tobytes()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostArray) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


def _flatten(host: HostArray) -> tuple[tuple[()], HostArray]:
    return (), host


def _unflatten(host: HostArray, _: object) -> HostArray:
    return host


jax.tree_util.register_pytree_node(HostArray, _flatten, _unflatten)


def given(leaves: Sequence[Any]) -> list[Any]:
    """The leaves as a call gets them: of NumPy's a copy, into which it may write."""
    return [leaf.array.copy() if isinstance(leaf, HostArray) else leaf for leaf in leaves]


def constants(leaves: Sequence[Any]) -> str:
    """A text that is equal where the constants among the leaves are; "" where there are none."""
    return ",".join(leaf.digest[:16] for leaf in leaves if isinstance(leaf, HostArray))
