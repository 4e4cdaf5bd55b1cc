"""Counts of a traced program against numbers worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from migrate_agent.tools.portable.jaxpr_cost import count, flops

A, B = jnp.zeros((4, 8)), jnp.zeros((8, 16))
IMAGE, KERNEL = jnp.zeros((2, 8, 8, 3)), jnp.zeros((3, 3, 3, 5))
DIMENSIONS = ("NHWC", "HWIO", "NHWC")


def _loop(a: Any, b: Any) -> Any:
    return jax.lax.scan(lambda carry, _: (carry + carry @ b @ b.T, None), a, None, length=10)[0]


@pytest.mark.parametrize(
    ("program", "arguments", "expected"),
    [
        (lambda a, b: a @ b, (A, B), 2 * 4 * 8 * 16),
        (lambda a, b: jnp.transpose(a @ b).reshape(-1), (A, B), 2 * 4 * 8 * 16),
        (lambda a, b: (a @ b).sum(), (A, B), 2 * 4 * 8 * 16 + 4 * 16),
        (_loop, (A, B), 10 * (2 * 2 * 4 * 8 * 16 + 4 * 8)),
        (lambda a: jax.lax.cond(True, lambda x: x @ x.T, lambda x: jnp.zeros((4, 4)), a), (A,), 2 * 4 * 4 * 8),
        (
            lambda x, k: jax.lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=DIMENSIONS),
            (IMAGE, KERNEL),
            2 * 2 * 64 * 5 * 27,
        ),
        (
            lambda x, k: jax.lax.conv_general_dilated(x, k, (1, 1), [(1, 1)] * 2, lhs_dilation=(2, 2), dimension_numbers=DIMENSIONS),
            (IMAGE, KERNEL),
            2 * 2 * 225 * 5 * 27 / 4,
        ),
    ],
)
def test_operations_are_those_of_the_formula(program: Callable[..., Any], arguments: tuple[Any, ...], expected: float) -> None:
    assert flops(jax.make_jaxpr(program)(*arguments).jaxpr) == expected


def test_memory_is_what_is_held_at_once_and_donated_results_take_none() -> None:
    """Weight 8×16, input 4×8, result 4×16 and its sine, of 4 bytes each; the new weight is written over the old one."""

    def step(weight: Any, x: Any) -> Any:
        y = x @ weight
        return jnp.sin(y).sum(), weight - 0.1 * (x.T @ y)

    rows = [{"role": "parameter"}, {"role": "input"}]
    counted = count(jax.make_jaxpr(step)(B, A), rows, ["loss", "parameter"])
    given, hidden = 4 * (8 * 16 + 4 * 8), 4 * 4 * 16
    assert counted["bytes"] == given + 4 + 4 * 8 * 16 and counted["unknown"] == 0
    assert given + hidden <= counted["peak"] <= given + 3 * hidden + 2 * 4 * 8 * 16
    assert counted["kept"] == 2 * 4 * 8 * 16
