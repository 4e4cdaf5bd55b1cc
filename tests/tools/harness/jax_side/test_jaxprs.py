"""What is looked up in a traced program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from migrate_agent.tools.harness.jax_side.jaxprs import narrow_float


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
