"""New arrays that only stand for a shape, a dtype, or the place of other values."""

from __future__ import annotations

import libcst as cst
import pytest

from migrate_agent.tools.rewrite.tables.new_arrays import of_detached, of_new_array, over_new_array

ATTRIBUTES = [
    ("jnp.empty((2, n), dtype=x.dtype).shape", "(2, n)"),
    ("jnp.zeros((2, n), dtype=x.dtype).dtype", "x.dtype"),
    ("lax.stop_gradient(x).dtype", "x.dtype"),
    ("lax.stop_gradient(x + y).shape", "(x + y).shape"),
    ("lax.stop_gradient(x).at", None),
    ("jax.random.uniform(rngs.params(), n).shape", "n"),
    ("jax.random.uniform(rngs.params(), n).dtype", "float"),
    ("jax.random.normal(rngs.params(), (2, n), x.dtype).dtype", "x.dtype"),
    ("jax.random.normal(rngs.params(), (2, n), dtype=x.dtype).dtype", None),
    ("jax.random.uniform(*given).shape", None),
    ("jax.random.split(key, n).shape", None),
    ("jnp.sin(x).dtype", None),
]
CALLS = [
    ("jnp.zeros_like(jnp.empty((2, n)))", "jnp.zeros((2, n))"),
    ("jnp.zeros_like(jnp.empty((2, n), dtype=x.dtype))", "jnp.zeros((2, n), dtype=x.dtype)"),
    ("jnp.ones_like(jnp.empty((2, n)))", "jnp.ones((2, n))"),
    ("jnp.full_like(jnp.empty((2, n)), -np.inf)", "jnp.full((2, n), -np.inf, dtype=float)"),
    ("jnp.full_like(jnp.empty((2, n), dtype=int), 3)", "jnp.full((2, n), 3, dtype=int)"),
    ("jnp.full_like(jnp.zeros(n), 3.0)", "jnp.full(n, 3.0, dtype=float)"),
    ("jnp.full_like(jnp.empty(n), 3, dtype=bool)", None),
    ("jnp.zeros_like(jnp.empty(*sizes), dtype=int)", None),
    ("jnp.zeros_like(jnp.sin(x))", None),
]


def text(node: cst.CSTNode | None) -> str | None:
    """The source of a node."""
    return None if node is None else cst.Module([]).code_for_node(node)


@pytest.mark.parametrize(("before", "after"), ATTRIBUTES)
def test_what_is_read_of_a_new_array_needs_none(before: str, after: str | None) -> None:
    node = cst.parse_expression(before)
    assert isinstance(node, cst.Attribute)
    assert text(of_new_array(node) or of_detached(node)) == after


@pytest.mark.parametrize(("before", "after"), CALLS)
def test_an_array_that_is_overwritten_is_not_made(before: str, after: str | None) -> None:
    node = cst.parse_expression(before)
    assert isinstance(node, cst.Call)
    assert text(over_new_array(node)) == after
