"""Initial values of modules while a program is judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from migrate_agent.tools.harness.jax_side.initial_values import INITIAL, initial_normal, initial_truncated, initial_uniform, is_concrete

KEY = jax.random.key(3)


@pytest.mark.parametrize("name", sorted(INITIAL))
def test_jax_has_what_they_stand_for(name: str) -> None:
    """Under this name, which is not public."""
    core: Any = __import__("jax._src.random.core", fromlist=[name])
    assert callable(getattr(core, name))


@pytest.mark.parametrize(
    ("draw", "mean", "deviation", "largest"),
    [
        (lambda key: initial_uniform(key, -1.0, 2.0, (10_000,), jnp.float32), 0.5, 3 / 12**0.5, 2.0),
        (lambda key: initial_normal(key, (10_000,), jnp.float32), 0.0, 1.0, 6.0),
        (lambda key: initial_truncated(key, -2.0, 2.0, (10_000,), jnp.float32), 0.0, 0.88, 2.0),
    ],
)
def test_numbers_are_of_the_distribution(draw: Callable[[Any], Any], mean: float, deviation: float, largest: float) -> None:
    """The same ones for a key, and others for another."""
    numbers = np.asarray(draw(KEY))
    assert numbers.dtype == np.float32
    assert (abs(numbers.mean() - mean) < 0.05, abs(numbers.std() - deviation) < 0.05) == (True, True)
    assert np.abs(numbers).max() <= largest
    assert np.array_equal(numbers, draw(KEY))
    assert not np.array_equal(numbers, draw(jax.random.key(4)))


def test_what_is_traced_is_left_to_jax() -> None:
    seen: list[bool] = []

    def draw(key: jax.Array) -> jax.Array:
        seen.append(is_concrete(key, (3,), np.dtype("float32")))
        return jax.random.normal(key, (3,))

    jax.jit(draw)(KEY)
    draw(KEY)
    assert seen == [False, True]
    assert not is_concrete(KEY, (3,), np.dtype("complex64"))
