"""What a module gave in calls that lie apart, computed again as one batch: losses over the steps of an episode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx


def random_state(model: nnx.Module) -> Any:
    """Where the random streams of a module stand, so that what it draws next can be drawn again."""
    _, *states = nnx.split(model, nnx.RngState, ...)
    return jax.tree.map(jnp.asarray, states[0])


def stack_records(records: Sequence[Any]) -> Any:
    """Records of the same structure as one, whose arrays have a new first axis. Raises `ValueError` where there are none, or their shapes differ."""
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *records)


def replay(function: Callable[..., Any], model: nnx.Module, records: Any) -> Any:
    """`function(model, *inputs)` for each record `(random state, *inputs)` of a stack, along a new first axis.

    The module draws what it drew then, and gradients reach its parameters; its other state stays as it is.
    """
    graph, *states = nnx.split(model, nnx.RngState, ...)
    return jax.vmap(lambda draws, *inputs: function(nnx.merge(graph, draws, states[1], copy=True), *inputs))(*records)
