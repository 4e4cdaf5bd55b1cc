"""Which programs compare numbers that they compute, and what such comparisons come to where each fusion rounds by itself."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest

from migrate_agent.tools.harness.common.xla_flags import quick, usual
from migrate_agent.tools.harness.jax_side.comparisons import FIRST_LEVEL, compares, quick_for, spreads

X = jnp.linspace(-1.0, 1.0, 12).reshape(3, 4)


def gradient(function: Callable[[jax.Array], jax.Array]) -> Callable[[jax.Array], jax.Array]:
    return jax.grad(lambda x: function(x).sum())


@pytest.mark.parametrize(
    ("function", "forward", "backward"),
    [
        (jax.nn.relu, False, False),
        (jax.nn.gelu, False, False),
        (jax.nn.softmax, False, False),
        (lambda x: (x - x.mean()) * jax.lax.rsqrt(x.var() + 1e-5), False, False),
        (lambda x: jnp.where(jnp.isnan(x), 0, x), False, False),
        (lambda x: jnp.where(jax.random.bernoulli(jax.random.key(0), 0.5, x.shape), x, 0), False, False),
        (lambda x: jnp.sort(x), False, False),
        (lambda x: jnp.where(jnp.abs(x) < 1, x, x**2), False, False),
        (lambda x: x.max(), False, True),
        (lambda x: jnp.maximum(x, 2 * x[:1]), False, True),
        (lambda x: jax.lax.cummax(x), False, True),
        (lambda x: (x == x.max()) * x, True, True),
        (lambda x: jnp.where(x < jax.lax.top_k(x, 2)[0][:, -1:], 0, x), True, True),
        (lambda x: jax.lax.scan(lambda c, row: (jnp.where(row > c, row, c), c), x[0], x)[1], True, True),
    ],
)
def test_what_compares(function: Callable[[jax.Array], jax.Array], forward: bool, backward: bool) -> None:
    assert compares(jax.make_jaxpr(function)(X)) == forward
    assert compares(jax.make_jaxpr(gradient(function))(X)) == backward


def convolved(stride: int, groups: int, kernel: int = 3) -> Callable[[jax.Array], jax.Array]:
    """A convolution of [1, 8, 4000] along the last axis."""
    window = jnp.ones((8, 8 // groups, kernel))
    return lambda x: jax.lax.conv_general_dilated(x, window, (stride,), [(0, 0)], feature_group_count=groups)


@pytest.mark.parametrize(
    ("function", "forward", "backward"),
    [
        (jnp.sin, False, False),
        (convolved(1, 8, 50), False, False),
        (convolved(2, 8, 50), False, True),
        (jax.jit(convolved(2, 8, 50)), False, True),
        (convolved(2, 8), False, False),  # a small one
        (convolved(2, 4, 50), False, False),  # its phases are taken apart
    ],
)
def test_what_spreads(function: Callable[[jax.Array], jax.Array], forward: bool, backward: bool) -> None:
    x = jnp.ones((1, 8, 4000))
    for program, spread in ((jax.make_jaxpr(function)(x), forward), (jax.make_jaxpr(gradient(function))(x), backward)):
        assert spreads(program) == spread
        assert quick_for(program) == ({**quick(), **FIRST_LEVEL} if spread else quick())


def test_a_maximum_of_what_is_scaled_and_shifted_has_a_gradient() -> None:
    """With `quick` alone some of these are NaN (XLA multiplies and adds in one step in one fusion, in two in another)."""

    def step(x: jax.Array, scale: jax.Array, shift: jax.Array) -> jax.Array:
        return jnp.abs((x - 0.1) * jax.lax.rsqrt(scale**2 + 0.3) * scale + shift).max()

    function = jax.grad(step, argnums=(0, 1, 2))
    rows = [jax.random.normal(jax.random.key(seed), (3, 8)) for seed in range(20)]
    arguments = [(jnp.zeros((4, 6, 8)), *row[:2]) for row in rows]
    traced = jax.jit(lambda *given: function(*given)).trace(*arguments[0])
    options = quick_for(traced.jaxpr)
    assert options == usual() != quick()
    compiled = traced.lower().compile(options)
    assert all(bool(jnp.isfinite(value).all()) for given in arguments for value in compiled(*given))
