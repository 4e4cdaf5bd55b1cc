"""Static arrays: modules with equal ones share a program, and their values are there while a function is traced."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from migrate_agent.tools.vendored.static import Static, concrete, unique, unique_consecutive


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


@pytest.mark.parametrize("values", [[3, 3, 1, 3], [5], [], [[2, 2], [2, 1]], [0.5, 0.5, -1.0]])
@pytest.mark.parametrize(
    "options", [{}, {"return_inverse": True}, {"return_counts": True}, {"return_inverse": True, "return_counts": True}]
)
@pytest.mark.parametrize("name", ["unique", "unique_consecutive"])
def test_different_values_are_torchs(name: str, options: dict[str, bool], values: list[Any]) -> None:
    expected = getattr(torch, name)(torch.tensor(values), **options)
    helper = {"unique": unique, "unique_consecutive": unique_consecutive}[name]
    shapes: list[Any] = []

    @jax.jit
    def run(x: jax.Array) -> Any:
        found = helper(concrete(lambda: jnp.array(values)), **options)
        shapes.append(found[0] if options else found)
        return jax.tree.map(lambda part: part + 0 * x.astype(part.dtype), found)

    found = run(jnp.zeros(()))
    pairs = zip(found, expected, strict=True) if options else [(found, expected)]
    for one, other in pairs:
        np.testing.assert_array_equal(one, other.numpy())
    assert not isinstance(shapes[0], jax.core.Tracer)


def test_values_of_a_traced_array_are_refused() -> None:
    with pytest.raises(jax.errors.TracerArrayConversionError):
        jax.jit(unique)(jnp.arange(3))
