"""Branches on tensors, where one side may give a Python number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def cond_of_numbers(pred: jax.Array, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """`lax.cond` of two functions of which one may give back a Python number where the other gives an array: it takes the array's dtype.

    So `if x.sum() > 0: loss = loss + f(x)` with `loss = 0` before. Shapes must agree.
    """
    given = [jax.eval_shape(branch, *operands) for branch in (true_fun, false_fun)]
    dtypes = jax.tree.map(lambda *sides: jnp.result_type(*map(number_or_dtype, sides)), *given)

    def alike(branch: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: jax.tree.map(lambda value, dtype: jnp.asarray(value).astype(dtype), branch(*args), dtypes)

    return lax.cond(pred, alike(true_fun), alike(false_fun), *operands)


def step_unless(stopped: bool | jax.Array, step: Callable[..., Any], *values: Any) -> Any:
    """The values as they are once a loop is `stopped`, else what `step` makes of them.

    A plain `False`, as before the first step, is decided while tracing: the values may begin with other shapes and dtypes than a step gives them.
    """
    return step(*values) if stopped is False else lax.cond(stopped, lambda *unchanged: unchanged, step, *values)


def number_or_dtype(value: Any) -> Any:
    """A Python number for what has the weak type of one; else the dtype."""
    if not value.weak_type:
        return value.dtype
    return 1.0 if jnp.issubdtype(value.dtype, jnp.floating) else 1j if jnp.issubdtype(value.dtype, jnp.complexfloating) else 1
