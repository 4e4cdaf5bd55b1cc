"""Programs whose loops report to the host are exported without these reports, and compute the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.extend.core import jaxpr_as_fun

from migrate_agent.tools.harness.jax_side.silent import silent


def told(*values: Any) -> None: ...


def step(x: Any, i: Any) -> tuple[Any, None]:
    jax.debug.callback(told, x, i)
    return jnp.sin(x) + i, None


def scanned(x: Any) -> Any:
    return jax.lax.scan(step, x, jnp.arange(3.0))[0]


def counted(x: Any) -> Any:
    return jax.lax.fori_loop(0, 3, lambda i, y: step(y, i * 1.0)[0], x)


def chosen(x: Any) -> Any:
    return jax.lax.cond(x.sum() > 0, scanned, lambda y: y * 2, x)


def recomputed(x: Any) -> Any:
    return jax.checkpoint(scanned)(x)


@pytest.mark.parametrize("function", [scanned, counted, chosen, recomputed])
@pytest.mark.parametrize("derive", [False, True])
def test_a_program_without_reports_is_exported(function: Callable[[Any], Any], derive: bool) -> None:
    program = jax.grad(lambda x: function(x).sum()) if derive else function
    x = jnp.linspace(0.1, 1.0, 4)
    traced = jax.jit(program).trace(x)
    quiet = jaxpr_as_fun(silent(traced.jaxpr))
    exported = export.export(jax.jit(quiet))(x)
    read: Any = export.deserialize(exported.serialize())
    np.testing.assert_allclose(read.call(x)[0], program(x), rtol=1e-6)


def test_with_reports_none_is() -> None:
    with pytest.raises(NotImplementedError):
        export.export(jax.jit(scanned))(jnp.ones(4))
