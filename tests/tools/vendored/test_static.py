"""Static arrays: modules with equal ones share a program, and their values are there while a function is traced."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from migrate_agent.tools.vendored.static import Static, concrete


@pytest.mark.parametrize(
    ("other", "equal"), [(np.arange(3), True), (np.arange(4), False), (np.arange(3.0), False), (np.array([0, 1, 3]), False)]
)
def test_equal_by_contents(other: np.ndarray, equal: bool) -> None:
    one, two = Static(np.arange(3)), Static(other)
    assert (one == two) is equal
    assert (hash(one) == hash(two)) is equal


def test_values_are_there_while_tracing() -> None:
    class M(nnx.Module):
        def __init__(self) -> None:
            self.sizes = Static(np.array([1, 2]))

        def __call__(self, x: jax.Array) -> jax.Array:
            for size in self.sizes.value:
                x = x * float(size)
            return x

    traced = []

    @nnx.jit
    def run(module: M, x: jax.Array) -> jax.Array:
        traced.append(1)
        return module(x)

    assert [float(run(M(), jnp.ones(()))) for _ in range(2)] == [2.0, 2.0]
    assert len(traced) == 1


def test_what_is_computed_at_once_may_decide_a_shape() -> None:
    def upper(x: jax.Array) -> jax.Array:
        return x[concrete(lambda: jnp.triu(jnp.ones(x.shape), 1) == 1)]

    x = jnp.arange(9.0).reshape(3, 3)
    assert jax.jit(upper)(x).tolist() == [1, 2, 5]
    assert jax.jit(jax.grad(lambda x: upper(x).sum()))(x).tolist() == [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    with pytest.raises(jax.errors.NonConcreteBooleanIndexError):
        jax.jit(lambda x: x[concrete(lambda: x > 0)])(x)
