"""Reads arrays and numbers from the plain attributes of a module by their paths on torch's side. Used inside the sandbox."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

NUMBERS = (int, float, np.ndarray, np.generic)


def held_arrays(modules: Mapping[str, Any], paths: Iterable[str]) -> dict[str, jax.Array]:
    """Path → array, of those that these modules (by their dotted path) hold an array or a number under."""
    by_path = {path: _at(modules, path.split(".")) for path in paths}
    return {path: jnp.asarray(value) for path, value in by_path.items() if value is not None}


def _at(modules: Mapping[str, Any], names: Sequence[str]) -> Any:
    """What the innermost module on the way holds under the rest of the path; None where that is no array or number."""
    inner = max((number for number in range(len(names)) if ".".join(names[:number]) in modules), default=None)
    if inner is None:
        return None
    attribute, *keys = names[inner:]
    value = vars(modules[".".join(names[:inner])]).get(attribute)
    for key in keys:
        value = _item(value, key)
    value = value.get_value() if isinstance(value, nnx.Variable) else value
    return value if hasattr(value, "shape") or (isinstance(value, NUMBERS) and not isinstance(value, bool)) else None


def _item(value: Any, key: str) -> Any:
    value = value.get_value() if isinstance(value, nnx.Variable) else value
    try:
        if isinstance(value, Mapping):
            return value.get(key, value.get(int(key)) if key.isdecimal() else None)
        return value[int(key)]
    except (IndexError, TypeError, ValueError, KeyError):
        return None
