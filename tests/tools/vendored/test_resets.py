"""`reset_parameters` as functions: the values that PyTorch's layers start with, drawn anew."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from migrate_agent.tools.vendored.conv_layers import Conv2d, ConvTranspose1d
from migrate_agent.tools.vendored.embedding import Embedding
from migrate_agent.tools.vendored.linear import Linear
from migrate_agent.tools.vendored.norm_layers import BatchNorm2d, GroupNorm, LayerNorm
from migrate_agent.tools.vendored.resets import reset_affine, reset_embedding, reset_layer, reset_normalisation

AFFINE: list[tuple[Any, tuple[Any, ...], int]] = [(Linear, (40, 50), 40), (Conv2d, (8, 20, 3), 72), (ConvTranspose1d, (12, 30, 4), 120)]


@pytest.mark.parametrize(("layer", "arguments", "fan"), AFFINE)
def test_affine_layers_are_uniform_by_fan_in(layer: Any, arguments: tuple[Any, ...], fan: int) -> None:
    made = layer(*arguments, rngs=nnx.Rngs(0))
    made.weight, made.bias[...] = jnp.full_like(made.weight, 9), jnp.full_like(made.bias[...], 9)
    reset_affine(made, rngs=nnx.Rngs(1))
    bound = 1 / math.sqrt(fan)
    for values in (np.asarray(made.weight), np.asarray(made.bias[...])):
        assert np.abs(values).max() <= bound and np.abs(values).max() > 0.9 * bound
        assert np.unique(values).size > 0.9 * values.size
    assert np.asarray(made.weight).std() == pytest.approx(bound / math.sqrt(3), rel=0.1)


def test_a_layer_without_bias() -> None:
    made = Linear(3, 2, bias=False, rngs=nnx.Rngs(0))
    reset_affine(made, rngs=nnx.Rngs(1))
    assert made.bias is None


@pytest.mark.parametrize(
    "make", [lambda rngs: BatchNorm2d(4, rngs=rngs), lambda rngs: LayerNorm(4, rngs=rngs), lambda rngs: GroupNorm(2, 4, rngs=rngs)]
)
def test_normalisations_start_again(make: Any) -> None:
    fresh, used = make(nnx.Rngs(0)), make(nnx.Rngs(0))
    for _, variable in nnx.iter_graph(used):
        if isinstance(variable, nnx.Variable):
            variable[...] = variable[...] + 3
    reset_normalisation(used)
    variables = [dict(nnx.to_flat_state(nnx.state(each))) for each in (fresh, used)]
    assert variables[0].keys() == variables[1].keys()
    for path, value in variables[0].items():
        np.testing.assert_array_equal(value[...], variables[1][path][...])


@pytest.mark.parametrize(
    "make", [lambda rngs: Linear(4, 4, rngs=rngs), lambda rngs: Embedding(4, 4, rngs=rngs), lambda rngs: LayerNorm(4, rngs=rngs)]
)
def test_layers_of_several_kinds(make: Any) -> None:
    made = make(nnx.Rngs(0))
    made.weight = jnp.full_like(made.weight, 9.0)
    reset_layer(made, rngs=nnx.Rngs(1))
    assert abs(np.asarray(made.weight)).max() < 5


def test_embeddings_keep_their_padding_row() -> None:
    made = Embedding(30, 20, padding_idx=3, rngs=nnx.Rngs(0))
    before = np.asarray(made.weight)
    reset_embedding(made, rngs=nnx.Rngs(1))
    after = np.asarray(made.weight)
    assert not after[3].any() and (after != before).mean() > 0.9
    assert after[np.arange(30) != 3].std() == pytest.approx(1, rel=0.1)
