"""Modules in double precision."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from flax import nnx


def to_double(module: Any) -> Any:
    """`module.double()` (https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html): its parameters and buffers become float64, in place.

    JAX has float64 once `jax_enable_x64` is set. Gives the module.
    """
    for _, variable in nnx.iter_graph(module):
        value: Any = variable.get_value() if isinstance(variable, nnx.Variable) else None
        if isinstance(variable, nnx.Variable) and hasattr(value, "dtype") and jnp.issubdtype(value.dtype, jnp.floating):
            variable.set_value(value.astype(jnp.float64))
    return module
