"""Streams with a seed of a constructor's own depend on the construction as well, and only while they are told to."""

from __future__ import annotations

import jax
import torch
from flax import nnx

from migrate_agent.tools.harness.jax_side.own_seeds import varied_seeds as varied_streams
from migrate_agent.tools.harness.torch_side.own_seeds import varied_seeds


def drawn(seed: int | jax.Array) -> float:
    return float(jax.random.uniform(nnx.Rngs(seed).params()))


def test_streams_of_a_number_depend_on_the_construction() -> None:
    usual, of_key = drawn(3), drawn(jax.random.key(3))
    values = []
    for number in range(3):
        with varied_streams(jax.random.key(number)):
            assert drawn(3) == drawn(3) != drawn(4)
            assert drawn(jax.random.key(3)) == of_key and isinstance(nnx.Rngs(params=3), nnx.Rngs)
            values.append(drawn(3))
    assert len({*values, usual}) == 4 and drawn(3) == usual


def test_torchs_stream_depends_on_the_construction() -> None:
    values = []
    for number in range(3):
        with varied_seeds(number):
            torch.manual_seed(3)
            values.append(float(torch.rand(())))
    torch.manual_seed(3)
    assert len({*values, float(torch.rand(()))}) == 4
