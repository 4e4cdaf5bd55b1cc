"""What is looked up in a traced program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from migrate_agent.tools.harness.common.operator_kinds import PRODUCTS
from migrate_agent.tools.harness.jax_side.jaxprs import narrow_float, narrow_kinds


@jax.custom_vjp
def rounded_backwards(x: Any) -> Any:
    """The same, with gradients in bfloat16."""
    return x


rounded_backwards.defvjp(lambda x: (x, None), lambda _, g: (g.astype(jnp.bfloat16).astype(g.dtype),))

PROGRAMS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "float32": (lambda x: (x * x).sum(), ""),
    "a cast": (lambda x: x.astype(jnp.float16).astype(x.dtype).sum(), "float16"),
    "two casts": (lambda x: (x.astype(jnp.float16).sum() + x.astype(jnp.bfloat16).sum()).astype(x.dtype), "bfloat16"),
    "in a loop": (lambda x: jax.lax.fori_loop(0, 2, lambda _, y: y.astype(jnp.bfloat16).astype(y.dtype), x).sum(), "bfloat16"),
    "in the backward pass": (lambda x: rounded_backwards(x).sum() ** 2, "bfloat16"),
    "integers": (lambda x: x.astype(jnp.int8).astype(x.dtype).sum(), ""),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_narrow_floats_are_seen_wherever_they_are(name: str) -> None:
    function, dtype = PROGRAMS[name]
    jaxpr = jax.make_jaxpr(jax.value_and_grad(function))(jnp.ones(3, jnp.float32)).jaxpr
    assert narrow_float(jaxpr) == dtype


ROUNDED: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "what has always been narrow": (lambda x: x.astype(jnp.float32) @ jnp.ones((3, 2)), False),
    "a sum of what was rounded": (lambda x: (2.0 * jnp.sin(x.astype(jnp.float32)).astype(x.dtype)) * 1.5 @ jnp.ones((3, 2)), False),
    "what was rounded": (lambda x: jnp.sin(x.astype(jnp.float32)).astype(x.dtype) @ jnp.ones((3, 2)), True),
    "what was rounded and turned": (lambda x: jnp.ones((2, 1)) @ jnp.sin(x.astype(jnp.float32)).astype(x.dtype).reshape(3, 1).T, True),
    "what was rounded in a function": (lambda x: jax.jit(jnp.bfloat16)(jnp.sin(x.astype(jnp.float32))) @ jnp.ones((3, 2)), True),
    "weights that were rounded": (lambda x: x @ jnp.ones((3, 2)).astype(x.dtype), True),
}


@pytest.mark.parametrize("name", ROUNDED)
def test_products_of_what_was_rounded_are_told(name: str) -> None:
    function, rounded = ROUNDED[name]
    jaxpr = jax.make_jaxpr(function)(jnp.ones(3, jnp.bfloat16)).jaxpr
    assert (PRODUCTS in narrow_kinds(jaxpr)) == rounded
