"""Behaviour of vendored layers that `module_db` does not reach: modes, randomness, dtypes, containers, shared weights."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from migrate_agent.tests.tools.vendored.modules import layer_classes
from migrate_agent.tools import weights
from migrate_agent.tools.vendored.attention import scaled_dot_product_attention
from migrate_agent.tools.vendored.containers import ParameterDict, ParameterList, Sequential
from migrate_agent.tools.vendored.dropout import dropout
from migrate_agent.tools.vendored.linear import Linear
from migrate_agent.tools.vendored.numeric import value_of
from migrate_agent.tools.vendored.resize import interpolate

RANDOM = ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout", "RReLU")


@pytest.mark.parametrize("name", RANDOM)
def test_random_layers_draw_afresh_and_repeat_by_key(name: str) -> None:
    x = -jnp.ones((4, 8, 3, 3, 3))
    layer, twin = (layer_classes()[name](rngs=nnx.Rngs(3)) for _ in range(2))
    first, second = layer(x), layer(x)
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, twin(x))
    layer.eval()
    np.testing.assert_array_equal(layer(x), layer(x))


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_dropout_rate_and_scale(p: float) -> None:
    result = np.asarray(dropout(jnp.ones(20_000), p, rngs=nnx.Rngs(0)))
    kept = result[result != 0]
    assert abs(kept.size / result.size - (1 - p)) < 0.02
    np.testing.assert_allclose(kept, 1 / max(1 - p, 1e-9), rtol=1e-6)


@pytest.mark.parametrize(("name", "shape"), [("Dropout1d", (5, 64, 7)), ("Dropout2d", (5, 64, 7, 7)), ("Dropout3d", (5, 64, 2, 3, 4))])
def test_channel_dropout_drops_whole_channels(name: str, shape: tuple[int, ...]) -> None:
    result = np.asarray(layer_classes()[name](0.5, rngs=nnx.Rngs(0))(jnp.ones(shape))).reshape(5, 64, -1)
    assert (result == result[:, :, :1]).all()
    assert 0.3 < (result[:, :, 0] == 0).mean() < 0.7


@pytest.mark.parametrize("name", ["AlphaDropout", "FeatureAlphaDropout"])
def test_alpha_dropout_keeps_mean_and_variance(name: str) -> None:
    x = jax.random.normal(jax.random.key(1), (400, 200))
    result = layer_classes()[name](0.3, rngs=nnx.Rngs(0))(x)
    assert abs(float(result.mean())) < 0.02
    assert abs(float(result.std()) - 1) < 0.02


def test_dropout_without_rngs_is_an_error() -> None:
    with pytest.raises(ValueError, match="needs rngs"):
        dropout(jnp.ones(3))


HALF: list[tuple[str, tuple[Any, ...], tuple[int, ...]]] = [
    ("Linear", (16, 8), (4, 16)), ("Conv2d", (4, 8, 3), (2, 4, 8, 8)), ("LayerNorm", (64,), (4, 64)), ("RMSNorm", (64,), (4, 64)),
    ("GroupNorm", (2, 8), (2, 8, 5, 5)), ("BatchNorm2d", (8,), (4, 8, 5, 5)), ("Softmax", (-1,), (4, 64)), ("LogSoftmax", (-1,), (4, 64)),
    ("GELU", (), (4, 64)), ("Mish", (), (4, 64)), ("Softplus", (), (4, 64)), ("AvgPool2d", (3,), (2, 4, 9, 9)),
    ("AdaptiveAvgPool2d", (3,), (2, 4, 8, 8)), ("Upsample", ((5, 5), None, "bilinear"), (2, 4, 8, 8)), ("LSTM", (8, 16), (5, 2, 8)),
    ("TransformerEncoderLayer", (16, 2, 32, 0.0), (5, 2, 16)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("name", "arguments", "shape"), HALF, ids=[row[0] for row in HALF])
@pytest.mark.ci
def test_lower_precision_is_as_good_as_torch(name: str, arguments: tuple[Any, ...], shape: tuple[int, ...], dtype: str) -> None:
    """Same dtype out as in, and an error against float64 of at most twice torch's plus one unit in the last place."""
    torch.manual_seed(0)
    reference = getattr(torch.nn, name)(*arguments)
    x = torch.randn(shape)
    low = reference.to(getattr(torch, dtype))
    theirs = first(low(x.to(getattr(torch, dtype))))
    layer = layer_classes()[name](*arguments, rngs=nnx.Rngs(0))
    state = {
        key: jnp.asarray(value.float().numpy(), dtype if value.is_floating_point() else int) for key, value in low.state_dict().items()
    }
    weights.load_state_dict(layer, {key: np.asarray(value) for key, value in state.items()})
    mine = first(layer(jnp.asarray(x.numpy(), dtype)))
    exact = first(reference.to(torch.float64)(x.to(getattr(torch, dtype)).double())).detach().numpy()
    assert mine.dtype == jnp.dtype(dtype)
    eps = {"float32": 2.0**-23, "bfloat16": 2.0**-7}[dtype]
    limit = 2 * np.abs(theirs.detach().double().numpy() - exact).max() + eps * max(1, np.abs(exact).max())
    assert np.abs(np.asarray(mine, np.float64) - exact).max() <= limit


def first(value: Any) -> Any:
    """The first output."""
    return value[0] if isinstance(value, tuple) else value


def test_sequential_passes_tuples_whole() -> None:
    net = Sequential(lambda x: (x, x + 1), lambda pair: pair[0] * pair[1])
    assert float(net(jnp.asarray(2.0))) == 6


def test_sequential_is_indexed_sliced_named_and_extended() -> None:
    rngs = nnx.Rngs(0)
    net = Sequential(OrderedDict(fc=Linear(3, 4, rngs=rngs), act=jax.nn.relu, out=Linear(4, 2, rngs=rngs)))
    assert net.fc is net[0] is net.layers[0]
    assert net[-1] is net.out
    assert len(net) == 3
    assert [*net][1] is jax.nn.relu
    assert list(weights.state_dict(net[1:])) == ["out.weight", "out.bias"]
    net.append(Linear(2, 2, rngs=rngs))
    assert "3.weight" in weights.state_dict(net)
    assert net(jnp.ones((1, 3))).shape == (1, 2)
    with pytest.raises(AttributeError, match="nothing"):
        _ = net.nothing


def test_parameter_containers_make_parameters() -> None:
    listed, named = ParameterList([jnp.ones(2)]), ParameterDict({"a": jnp.ones(3)})
    listed.append(jnp.zeros(1))
    named["b"] = jnp.zeros(4)
    assert {name: value.shape for name, value in weights.parameters(listed).items()} == {"0": (2,), "1": (1,)}
    assert {name: value.shape for name, value in weights.parameters(named).items()} == {"a": (3,), "b": (4,)}


@pytest.mark.parametrize(("name", "arguments"), [("Linear", (3, 4)), ("Conv2d", (3, 4, 2)), ("ConvTranspose2d", (3, 4, 2)), ("Embedding", (3, 4)),
                                                 ("LayerNorm", (4,)), ("RMSNorm", (4,)), ("GroupNorm", (2, 4)), ("BatchNorm2d", (4,))])  # fmt: skip
def test_weight_reads_and_writes_in_torch_layout(name: str, arguments: tuple[Any, ...]) -> None:
    layer = layer_classes()[name](*arguments, rngs=nnx.Rngs(0))
    shape = getattr(torch.nn, name)(*arguments).weight.shape
    assert layer.weight.shape == tuple(shape)
    value = jnp.arange(layer.weight.size, dtype=jnp.float32).reshape(shape)
    layer.weight = value
    np.testing.assert_array_equal(layer.weight, value)
    twin = layer_classes()[name](*arguments, rngs=nnx.Rngs(1))
    (variable,) = [leaf.variable for key, leaf in weights.leaves(layer).items() if key == "weight"]
    twin.weight = variable
    np.testing.assert_array_equal(twin.weight, value)
    assert weights.leaves(twin)["weight"].variable is variable


def test_batch_norm_modes() -> None:
    layer, x = layer_classes()["BatchNorm1d"](3, rngs=nnx.Rngs(0)), jnp.arange(12.0).reshape(4, 3)
    layer(x)
    assert int(value_of(layer.num_batches_tracked)) == 1
    running = layer.running_mean
    layer.eval()
    layer(x)
    np.testing.assert_array_equal(layer.running_mean, running)
    layer.train()
    with pytest.raises(ValueError, match="more than one value per channel"):
        layer(x[:1])


def test_attention_masks_from_the_upper_left_and_survives_masked_rows() -> None:
    query, key = jnp.ones((1, 2, 4)), jnp.arange(12.0).reshape(1, 3, 4)
    causal = scaled_dot_product_attention(query, key, key, is_causal=True)
    np.testing.assert_allclose(causal[0, 0], key[0, 0])
    empty = scaled_dot_product_attention(query, key, key, jnp.zeros((2, 3), bool))
    q, k = torch.tensor(np.asarray(query)), torch.tensor(np.asarray(key))
    theirs = torch.nn.functional.scaled_dot_product_attention(q, k, k, torch.zeros((2, 3), dtype=torch.bool))
    np.testing.assert_array_equal(empty, theirs)


@pytest.mark.parametrize("need_weights", [True, False])
def test_multihead_attention_of_a_sample_that_is_all_padding(need_weights: bool) -> None:
    reference = torch.nn.MultiheadAttention(4, 2, batch_first=True)
    layer = layer_classes()["MultiheadAttention"](4, 2, batch_first=True, rngs=nnx.Rngs(0))
    weights.load_state_dict(layer, {name: value.numpy() for name, value in reference.state_dict().items()})
    x, padding = torch.randn(2, 3, 4), torch.tensor([[False, False, True], [True, True, True]])
    theirs, _ = reference(x, x, x, padding, need_weights=need_weights)
    array = jnp.asarray(x.numpy())
    mine, _ = layer(array, array, array, jnp.asarray(padding.numpy()), need_weights=need_weights)
    np.testing.assert_allclose(mine, theirs.detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(3, 4), (13, 5)])
def test_antialiased_resizing(mode: str, size: tuple[int, int]) -> None:
    x = torch.randn(2, 3, 8, 9, dtype=torch.float64)
    with jax.enable_x64(True):
        mine = interpolate(jnp.asarray(x.numpy()), size, mode=mode, antialias=True)
        theirs = torch.nn.functional.interpolate(x, size, mode=mode, antialias=True)
        np.testing.assert_allclose(mine, theirs.numpy(), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "arguments", "shape"),
    [
        ("LayerNorm", (6,), (2, 1)),
        ("RMSNorm", (6,), (2, 1)),
        ("LayerNorm", ((3, 4),), (2, 3, 1)),
        ("BatchNorm2d", (6,), (2, 1, 3, 3)),
        ("GroupNorm", (1, 6), (2, 1, 3)),
        ("InstanceNorm1d", (6, 1e-5, 0.1, True), (2, 1, 3)),
        ("ZeroPad2d", ((0, 0, 5, -5),), (1, 4, 3)),
    ],
)
def test_shapes_that_torch_refuses_are_not_broadcast(name: str, arguments: tuple[Any, ...], shape: tuple[int, ...]) -> None:
    with pytest.raises((RuntimeError, ValueError)):
        getattr(torch.nn, name)(*arguments)(torch.ones(shape))
    with pytest.raises(ValueError, match="an input of shape"):
        layer_classes()[name](*arguments, rngs=nnx.Rngs(0))(jnp.ones(shape))
