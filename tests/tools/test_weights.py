"""State dictionaries: names and layouts, ties, round trips, and errors that name every key."""

from __future__ import annotations

import subprocess
import sys
from collections import OrderedDict
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import torch
from flax import nnx
from torch import nn

from migrate_agent.tools import weights
from migrate_agent.tools.vendored.containers import LayerStack, Sequential
from migrate_agent.tools.vendored.conv_layers import Conv2d, ConvTranspose2d
from migrate_agent.tools.vendored.embedding import Embedding
from migrate_agent.tools.vendored.linear import Linear
from migrate_agent.tools.vendored.norm_layers import BatchNorm2d, LayerNorm
from migrate_agent.tools.weights import StateDictError


class TorchNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tok = nn.Embedding(7, 4)
        self.body = nn.Sequential(OrderedDict(conv=nn.Conv2d(4, 6, (2, 3), groups=2), norm=nn.BatchNorm2d(6)))
        self.up = nn.ConvTranspose2d(6, 4, (2, 3), groups=2)
        self.blocks = nn.ModuleList([nn.Sequential(nn.LayerNorm(4), nn.ReLU(), nn.Linear(4, 4)) for _ in range(2)])
        self.named = nn.ModuleDict({"a": nn.Linear(4, 4, bias=False)})
        self.scale = nn.Parameter(torch.randn(3))
        self.register_buffer("mask", torch.ones(2, 2, dtype=torch.bool))
        self.register_buffer("cache", torch.ones(2), persistent=False)
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.tok.weight


class Net(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.tok = Embedding(7, 4, rngs=rngs)
        self.body = Sequential(OrderedDict(conv=Conv2d(4, 6, (2, 3), groups=2, rngs=rngs), norm=BatchNorm2d(6, rngs=rngs)))
        self.up = ConvTranspose2d(6, 4, (2, 3), groups=2, rngs=rngs)
        self.blocks = nnx.List([nnx.Sequential(LayerNorm(4, rngs=rngs), jax.nn.relu, Linear(4, 4, rngs=rngs)) for _ in range(2)])
        self.named = nnx.Dict({"a": Linear(4, 4, bias=False, rngs=rngs)})
        self.scale = nnx.Param(jnp.zeros(3))
        self.mask = nnx.Variable(jnp.zeros((2, 2), bool))
        self.cache = nnx.Cache(jnp.ones(2))
        self.note = nnx.Intermediate(jnp.ones(2))
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.head = Linear(4, 7, bias=False, rngs=rngs)
        self.head.weight = self.tok.embedding


def torch_state(model: nn.Module) -> dict[str, Any]:
    return {name: value.numpy() for name, value in model.state_dict().items()}


def test_every_key_once_and_back() -> None:
    state, net = torch_state(TorchNet()), Net(nnx.Rngs(0))
    weights.load_state_dict(net, state)
    found = weights.state_dict(net)
    assert set(found) == set(state)
    for name, value in state.items():
        np.testing.assert_array_equal(found[name], value)
        assert found[name].flags["C_CONTIGUOUS"]
    assert weights.state_dict(nnx.merge(*nnx.split(net))).keys() == found.keys()


def test_parameters_are_the_variables() -> None:
    net = Net(nnx.Rngs(0))
    found = weights.parameters(net)
    assert set(found) == set(dict(TorchNet().named_parameters(remove_duplicate=False)))
    assert found["tok.weight"] is found["head.weight"] is net.tok.embedding
    assert found["blocks.0.2.weight"] is vars(net.blocks[0].layers[2])["kernel"]


def test_ties_hold_through_loading_and_training() -> None:
    net = Net(nnx.Rngs(0))
    weights.load_state_dict(net, torch_state(TorchNet()))
    net.tok.weight = jnp.arange(28.0).reshape(7, 4)
    np.testing.assert_array_equal(net.head(jnp.eye(4)).T, net.tok.weight)
    gradient = nnx.grad(lambda model: model.head(model.tok(jnp.arange(3))).sum())(net)
    leaves = [leaf for leaf in jax.tree.leaves(gradient) if leaf.shape == (7, 4)]
    assert len(leaves) == 1


@pytest.mark.parametrize("first", ["embedding", "linear"])
def test_a_square_tie_keeps_its_layout(first: str) -> None:
    table, linear = Embedding(4, 4, rngs=nnx.Rngs(0)), Linear(4, 4, bias=False, rngs=nnx.Rngs(1))
    if first == "embedding":
        linear.weight = table.embedding
    else:
        table.weight = linear.kernel
    module = nnx.List([table, linear])
    matrix = np.arange(16, dtype=np.float32).reshape(4, 4)
    weights.load_state_dict(module, {"0.weight": matrix, "1.weight": matrix})
    np.testing.assert_array_equal(table(jnp.arange(4)), matrix)
    np.testing.assert_array_equal(linear(jnp.eye(4)), matrix.T)
    np.testing.assert_array_equal(weights.state_dict(module)["1.weight"], matrix)
    with pytest.raises(StateDictError, match=r"0\.weight and 1\.weight are one tied variable"):
        weights.load_state_dict(module, {"0.weight": matrix, "1.weight": matrix.T})


def stack(count: int) -> LayerStack:
    """Layers of a convolution, a norm and two levels of stacks."""

    def layer(rngs: nnx.Rngs) -> nnx.Module:
        inner = LayerStack(lambda rngs: Linear(3, 2, rngs=rngs), 2, rngs=rngs)
        return nnx.List([Conv2d(4, 6, (2, 3), groups=2, rngs=rngs), BatchNorm2d(6, rngs=rngs), inner])

    return LayerStack(layer, count, rngs=nnx.Rngs(0))


def test_a_stack_has_the_names_and_layouts_of_a_list() -> None:
    inner = [nn.ModuleList([nn.Linear(3, 2) for _ in range(2)]) for _ in range(3)]
    torch_list = nn.ModuleList([nn.ModuleList([nn.Conv2d(4, 6, (2, 3), groups=2), nn.BatchNorm2d(6), one]) for one in inner])
    state, port = torch_state(torch_list), stack(3)
    weights.load_state_dict(port, state)
    found = weights.state_dict(port)
    assert found.keys() == state.keys()
    for name, value in state.items():
        np.testing.assert_array_equal(found[name], value)
    one = weights.leaves(port)["1.2.0.weight"]
    assert one.index == (1, 0) and one.variable.get_value().shape == (3, 2, 3, 2)
    with pytest.raises(StateDictError, match=r"missing keys: 2\.0\.weight"):
        weights.load_state_dict(port, {name: value for name, value in state.items() if name != "2.0.weight"})


def test_a_stack_of_no_layers_gives_what_it_takes() -> None:
    port = stack(0)
    assert weights.state_dict(port) == {}
    np.testing.assert_array_equal(port(jnp.arange(3.0)), np.arange(3.0))
    assert weights.state_dict(nnx.merge(*nnx.split(port))) == {}


def test_one_error_names_all_keys_and_changes_nothing() -> None:
    net, state = Net(nnx.Rngs(0)), torch_state(TorchNet())
    before = weights.state_dict(net)
    del state["scale"], state["body.norm.running_var"]
    state |= {"extra": np.zeros(1), "up.weight": np.zeros((1, 2)), "more": np.zeros(1)}
    with pytest.raises(StateDictError) as caught:
        weights.load_state_dict(net, state)
    message = str(caught.value)
    for text in ("missing keys: body.norm.running_var, scale", "unexpected keys: extra, more", "up.weight has shape (1, 2)"):
        assert text in message
    for name, value in weights.state_dict(net).items():
        np.testing.assert_array_equal(value, before[name])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_dtypes_are_those_of_the_state(dtype: Any) -> None:
    with jax.enable_x64(True):
        layer = Linear(3, 2, rngs=nnx.Rngs(0))
        state = {"weight": np.arange(6).reshape(2, 3).astype(dtype), "bias": np.ones(2, dtype)}
        weights.load_state_dict(layer, state)
        assert {variable.dtype for variable in weights.parameters(layer).values()} == {np.dtype(dtype)}
        assert weights.state_dict(layer)["weight"].dtype == dtype
        assert layer(jnp.ones((1, 3), dtype)).dtype == dtype


def test_loading_copies() -> None:
    layer, state = Linear(64, 64, rngs=nnx.Rngs(0)), {"weight": np.ones((64, 64), np.float32), "bias": np.ones(64, np.float32)}
    weights.load_state_dict(layer, state)
    state["bias"][:] = 2
    np.testing.assert_array_equal(weights.state_dict(layer)["bias"], 1)


def test_gradients_go_to_torch_layout_and_back() -> None:
    leaf = weights.leaves(Conv2d(4, 6, (2, 3), rngs=nnx.Rngs(0)))["weight"]
    assert leaf.shape == (6, 4, 2, 3)
    array = np.arange(144).reshape(leaf.variable.shape)
    np.testing.assert_array_equal(leaf.from_torch(leaf.to_torch(array)), array)


def test_two_variables_of_one_name_are_an_error() -> None:
    layer: Any = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
    layer.weight = nnx.Param(jnp.ones(2))
    with pytest.raises(StateDictError, match="two variables are called 'weight'"):
        weights.state_dict(layer)


def test_shared_modules_stand_under_each_name_and_cycles_end() -> None:
    shared = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
    net: Any = nnx.Dict({"a": shared, "b": shared})
    net.itself = net
    assert set(weights.state_dict(net)) == {"a.weight", "a.bias", "b.weight", "b.bias"}


def test_plain_nnx_layers() -> None:
    rngs = nnx.Rngs(0)
    net = nnx.Dict({"n": nnx.BatchNorm(3, rngs=rngs), "c": nnx.Conv(3, 4, (5,), rngs=rngs), "g": nnx.GroupNorm(4, 2, rngs=rngs)})
    shapes = {name: value.shape for name, value in weights.state_dict(net).items()}
    assert shapes == {
        "n.running_mean": (3,), "n.running_var": (3,), "n.weight": (3,), "n.bias": (3,),
        "c.weight": (4, 3, 5), "c.bias": (4,), "g.weight": (4,), "g.bias": (4,),
    }  # fmt: skip


class Kept(nnx.Module):
    def __init__(self) -> None:
        self.w = nnx.Param(jnp.ones(3))
        self.kept = nnx.data({"w": self.w, "other": nnx.Param(jnp.ones(2))})
        self.all = nnx.data([self.w, (self.w, nnx.Param(jnp.ones(2)))])


def test_a_container_gives_no_second_name_to_an_attribute() -> None:
    assert set(weights.state_dict(Kept())) == {"w", "kept.other", "all.1.1"}


def test_a_class_that_ties_under_a_condition_has_the_head_of_its_own() -> None:
    class Model(nnx.Module):
        tied_names: ClassVar = {"head.weight": "table.weight"}

        def __init__(self, tied: bool, rngs: nnx.Rngs) -> None:
            self.table = nnx.Embed(3, 2, rngs=rngs)
            self.head = None if tied else nnx.Linear(2, 3, use_bias=False, rngs=rngs)

    for tied in (True, False):
        state = weights.state_dict(Model(tied, nnx.Rngs(0)))
        assert set(state) == {"table.weight", "head.weight"}
        assert np.array_equal(state["table.weight"], state["head.weight"]) == tied


def test_importing_it_imports_no_torch() -> None:
    code = "import sys, migrate_agent.tools.weights; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
