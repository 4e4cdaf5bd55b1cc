"""Which modules an optimizer of a candidate updates."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import pytest
from flax import nnx

from migrate_agent.tools.programs.judge.held_modules import held_modules, shapes


class Both(nnx.Module):
    """Two modules, and nothing beside them."""

    def __init__(self, *parts: nnx.Module) -> None:
        self.first, self.second = parts


class Scaled(Both):
    """Two modules, and a parameter beside them."""

    def __init__(self, *parts: nnx.Module) -> None:
        super().__init__(*parts)
        self.scale = nnx.Param(jnp.ones(()))


A, B = nnx.Linear(2, 3, rngs=nnx.Rngs(0)), nnx.Linear(3, 2, rngs=nnx.Rngs(0))
AS, BS = shapes(A), shapes(B)


@pytest.mark.parametrize(
    ("model", "states", "expected"),
    [
        (A, [AS, BS], [A]),
        ((A, B), [AS, BS], [A, B]),
        ({"b": B, "a": A}, [AS, BS], [A, B]),
        (Both(A, B), [AS, BS], [A, B]),
        (nnx.List([B, A]), [BS, AS], [B, A]),
    ],
)
def test_the_modules_that_are_held(model: Any, states: list[Any], expected: list[Any]) -> None:
    """In the order of the original."""
    assert list(map(id, held_modules(model, states))) == list(map(id, expected))


@pytest.mark.parametrize(("kind", "states"), [(Both, [AS]), (Both, [AS, AS]), (Scaled, [AS, BS])])
def test_what_is_not_wholly_known_is_one(kind: type[Both], states: list[Any]) -> None:
    """A module or a parameter that no optimizer of the original has is a difference to be told."""
    model = kind(A, B)
    assert held_modules(model, states) == [model]


def test_a_part_stands_for_the_module_around_it() -> None:
    """The original's state is that of the outermost module. `A` is a part of other modules here, and any of them would be an answer."""
    whole = Both(nnx.Linear(2, 3, rngs=nnx.Rngs(0)), B)
    assert held_modules(whole.first, [shapes(whole)]) == [whole]
