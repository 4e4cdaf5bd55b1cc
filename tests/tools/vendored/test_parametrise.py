"""Weight and spectral normalisation and registered parametrisations against PyTorch's, in float64: state, outputs, gradients, buffers, removal."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx
from torch.nn.utils import parametrizations, parametrize

from migrate_agent.tests.tools.compiling import unoptimised
from migrate_agent.tests.tools.vendored.modules import layer_classes
from migrate_agent.tools import weights
from migrate_agent.tools.rewrite.tables.helpers import render
from migrate_agent.tools.vendored import parametrise as old
from migrate_agent.tools.vendored import parametrizations as new
from migrate_agent.tools.vendored.containers import Sequential
from migrate_agent.tools.vendored.plain_layers import ChannelsFirstConv, ChannelsFirstConvTranspose
from migrate_agent.tools.verify.checks.static import calls, patches
from migrate_agent.tools.verify.evidence.parsed_source import Source

FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "weight_norm": (torch.nn.utils.weight_norm, old.weight_norm),
    "spectral_norm": (torch.nn.utils.spectral_norm, old.spectral_norm),
    "parametrizations.weight_norm": (parametrizations.weight_norm, new.parametrize_weight_norm),
    "parametrizations.spectral_norm": (parametrizations.spectral_norm, new.parametrize_spectral_norm),
}
"""Name → torch's function and ours."""


@dataclass(frozen=True)
class Case:
    """A layer with its constructor's arguments, the shape of an input, and options of the norm."""

    layer: str
    arguments: tuple[Any, ...]
    shape: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)
    plain: Callable[[nnx.Rngs], Any] | None = None
    """Makes one of Flax's own layers in place of the helper."""

    def __str__(self) -> str:
        return f"{'plain ' if self.plain else ''}{self.layer}{''.join(f' {key}={value}' for key, value in self.options.items())}"


SHARED = (
    Case("Linear", (3, 4), (5, 3), {"dim": 1}),
    Case("Conv2d", (4, 6, 3, 1, 1, 1, 2, False), (2, 4, 5, 5)),
    Case("ConvTranspose1d", (3, 4, 3, 2), (2, 3, 5)),
    Case("LSTM", (3, 4), (5, 2, 3), {"name": "weight_hh_l0"}),
)
PLAIN = (
    Case("Linear", (3, 4), (5, 3), plain=lambda rngs: nnx.Linear(3, 4, rngs=rngs)),
    Case("Linear", (3, 4), (5, 3), {"dim": 1}, plain=lambda rngs: nnx.Linear(3, 4, rngs=rngs)),
    Case(
        "Conv2d",
        (4, 6, 3, 1, 1, 1, 2, False),
        (2, 4, 5, 5),
        plain=lambda rngs: ChannelsFirstConv(4, 6, (3, 3), padding=1, feature_group_count=2, use_bias=False, rngs=rngs),
    ),
    Case(
        "ConvTranspose1d",
        (3, 4, 3, 2),
        (2, 3, 5),
        plain=lambda rngs: ChannelsFirstConvTranspose(3, 4, (3,), strides=2, padding=[(2, 2)], transpose_kernel=True, rngs=rngs),
    ),
)
"""The layers that may be Flax's own where their kernel is computed."""
CASES = {
    "weight_norm": (
        *SHARED,
        *PLAIN,
        Case("Embedding", (7, 3), (2, 4)),
        *(Case("Linear", (3, 4), (5, 3), {"dim": dim}) for dim in (None, -1)),
    ),
    "spectral_norm": (*SHARED, *PLAIN, Case("Linear", (3, 4), (5, 3), {"n_power_iterations": 3, "eps": 1e-6})),
}
EVALUATED = (SHARED[1],)
ALL = [
    pytest.param(name, case, training, id=f"{name} {case} {'train' if training else 'eval'}")
    for name in FUNCTIONS
    for case in CASES[name.rpartition(".")[2]]
    for training in (True, False)
    if training != (case in EVALUATED or (name == "parametrizations.spectral_norm" and case.layer == "LSTM"))
]
"""Training mode, but for a few; torch's LSTM reads a registered parametrisation several times in one call, each time with a power iteration."""


@pytest.fixture(autouse=True)
def wide() -> Iterator[None]:
    with jax.enable_x64(True), unoptimised():
        yield


def applied(name: str, case: Case) -> tuple[torch.nn.Module, Any]:
    """The torch layer in float64 and ours, with the norm and equal state."""
    torch.manual_seed(0)
    theirs, mine = FUNCTIONS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        reference = theirs(getattr(torch.nn, case.layer)(*case.arguments).double(), **case.options)
    rngs = {"rngs": nnx.Rngs(1)} if "spectral" in name else {}
    made = case.plain(nnx.Rngs(0)) if case.plain else layer_classes()[case.layer](*case.arguments, rngs=nnx.Rngs(0))
    layer = mine(made, **case.options, **rngs)
    load(layer, reference)
    return reference, layer


def load(layer: Any, reference: torch.nn.Module) -> None:
    """Give ours the reference's state."""
    weights.load_state_dict(layer, {key: value.detach().numpy() for key, value in reference.state_dict().items()})


def assert_state(layer: Any, reference: torch.nn.Module, tolerance: float = 0.0) -> None:
    """Both have the same names, and values as close as asked."""
    mine, theirs = weights.state_dict(layer), reference.state_dict()
    assert set(mine) == set(theirs)
    for key, value in theirs.items():
        np.testing.assert_allclose(mine[key], value.detach().numpy(), rtol=tolerance, atol=tolerance, err_msg=key)


def sample(case: Case) -> torch.Tensor:
    """An input."""
    return torch.randint(0, case.arguments[0], case.shape) if case.layer == "Embedding" else torch.randn(case.shape, dtype=torch.float64)


def first(value: Any) -> Any:
    """The first output."""
    return value[0] if isinstance(value, tuple) else value


@pytest.mark.parametrize(("name", "case", "training"), ALL)
def test_as_torch(name: str, case: Case, training: bool) -> None:
    """State, output, gradients of all parameters and buffers after two calls, under `nnx.jit`."""
    reference, layer = applied(name, case)
    assert_state(layer, reference)
    reference.train(training)
    layer.train() if training else layer.eval()

    @nnx.jit
    def run(layer: Any, x: Any) -> Any:
        def loss(layer: Any) -> Any:
            output = first(layer(x))
            return jnp.sum(jnp.sin(output)), output

        return nnx.grad(loss, has_aux=True)(layer)

    for _ in range(2):
        x = sample(case)
        expected = first(reference(x))
        reference.zero_grad()
        expected.sin().sum().backward()
        gradients, output = run(layer, jnp.asarray(x.numpy()))
        np.testing.assert_allclose(output, expected.detach().numpy(), rtol=1e-11, atol=1e-12)
        assert_state(layer, reference, 1e-12)
        twin = nnx.clone(layer)
        nnx.update(twin, gradients)
        found = weights.parameters(twin)
        named = dict(reference.named_parameters())
        assert set(found) == set(named)
        leaves = weights.leaves(twin)
        for key, parameter in named.items():
            assert parameter.grad is not None
            np.testing.assert_allclose(leaves[key].to_torch(found[key][...]), parameter.grad.numpy(), rtol=1e-9, atol=1e-11, err_msg=key)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("case", SHARED[1:3], ids=str)
def test_initial_values(name: str, case: Case) -> None:
    """What is computed at first is the layer's own weight (over its largest singular value), and the magnitude is its norm."""
    reference, _ = applied(name, case)
    plain = layer_classes()[case.layer](*case.arguments, rngs=nnx.Rngs(0))
    before = weights.state_dict(plain)[case.options.get("name", "weight")]
    rngs = {"rngs": nnx.Rngs(1)} if "spectral" in name else {}
    layer = FUNCTIONS[name][1](plain, **case.options, **rngs)
    assert layer is plain
    assert isinstance(layer, layer_classes()[case.layer])
    assert type(layer).__name__ == case.layer
    state = weights.state_dict(layer)
    assert {key: value.shape for key, value in state.items()} == {key: tuple(value.shape) for key, value in reference.state_dict().items()}
    originals = [key for key in state if key.endswith(("_v", "_orig", "original", "original1")) and "0._" not in key]
    kept = [key for key in originals if state[key].shape == before.shape]
    np.testing.assert_array_equal(state[kept[-1]], before)
    if "weight_norm" in name:
        removed = remove(name, layer, case.options.get("name", "weight"))
        np.testing.assert_allclose(weights.state_dict(removed)[case.options.get("name", "weight")], before, rtol=1e-6)


def remove(name: str, layer: Any, parameter: str = "weight") -> Any:
    """Undo a norm of ours."""
    if name.startswith("parametrizations"):
        return new.remove_parametrizations(layer, parameter)
    return (old.remove_weight_norm if name == "weight_norm" else old.remove_spectral_norm)(layer, parameter)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("layer_case", [SHARED[2], SHARED[3]], ids=str)
def test_removal(name: str, layer_case: Case) -> None:
    reference, layer = applied(name, layer_case)
    parameter = layer_case.options.get("name", "weight")
    if name.startswith("parametrizations"):
        parametrize.remove_parametrizations(reference, parameter)
    else:
        {"weight_norm": torch.nn.utils.remove_weight_norm, "spectral_norm": torch.nn.utils.remove_spectral_norm}[name](reference, parameter)
    assert remove(name, layer, parameter) is layer
    assert type(layer) is layer_classes()[layer_case.layer]
    assert_state(layer, reference, 1e-12)
    with pytest.raises(ValueError, match=parameter):
        remove(name, layer, parameter)
    load(layer, reference)
    x = sample(layer_case)
    np.testing.assert_allclose(first(layer(jnp.asarray(x.numpy()))), first(reference(x)).detach().numpy(), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_inside_other_modules_and_transformations(name: str) -> None:
    """In a `Sequential`; split and merged; made under `nnx.eval_shape`; one graph for equal constructions, so that nothing compiles anew."""
    function = FUNCTIONS[name][1]

    def make() -> Any:
        rngs = {"rngs": nnx.Rngs(1)} if "spectral" in name else {}
        return Sequential(function(layer_classes()["Conv1d"](3, 4, 3, rngs=nnx.Rngs(0)), **rngs), jax.nn.relu)

    net, x = make(), jnp.ones((2, 3, 8), jnp.float32)
    assert all(key.startswith("0.") for key in weights.state_dict(net))
    graph, state = nnx.split(net)
    assert graph == nnx.split(make())[0]
    merged = nnx.merge(graph, state)
    merged.eval()
    net.eval()
    np.testing.assert_array_equal(merged(x), net(x))
    abstract = nnx.eval_shape(make)
    assert {key: leaf.shape for key, leaf in weights.leaves(abstract).items()} == {
        key: v.shape for key, v in weights.state_dict(net).items()
    }


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - {"spectral_norm"}))
def test_weight_is_read_but_not_written(name: str) -> None:
    """As in torch, writing into the computed weight is lost; its shape is asked for without a power iteration."""
    _, layer = applied(name, Case("Conv1d", (3, 4, 3), (2, 3, 8)))
    layer.eval()
    before, weight = weights.state_dict(layer), layer.weight
    layer.weight = jnp.zeros_like(weight)
    np.testing.assert_array_equal(layer.weight, weight)
    layer.train()
    assert (layer.kernel.shape, layer.kernel.ndim, layer.kernel.dtype) == ((3, 3, 4), 3, weight.dtype)
    for key, value in weights.state_dict(layer).items():
        np.testing.assert_array_equal(value, before[key])


def test_two_parameters_of_one_module() -> None:
    layer = layer_classes()["LSTM"](3, 4, rngs=nnx.Rngs(0))
    for name in ("weight_ih_l0", "weight_hh_l0"):
        old.weight_norm(layer, name)
    x = jnp.ones((5, 2, 3))
    before = layer(x)[0]
    old.remove_weight_norm(layer, "weight_ih_l0")
    assert {"weight_ih_l0", "weight_hh_l0_g", "weight_hh_l0_v"} < set(weights.state_dict(layer))
    np.testing.assert_allclose(layer(x)[0], before, rtol=1e-12)


class Symmetric(torch.nn.Module):
    """A user's own parametrisation."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.triu() + x.triu(1).mT


class Exponential(torch.nn.Module):
    """One with an inverse."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.exp()

    def right_inverse(self, x: torch.Tensor) -> torch.Tensor:
        return x.abs().log()


class SymmetricMap(nnx.Module):
    """`Symmetric`, migrated."""

    def __call__(self, x: jax.Array) -> jax.Array:
        return jnp.triu(x) + jnp.triu(x, 1).mT


class ExponentialMap(nnx.Module):
    """`Exponential`, migrated."""

    def __call__(self, x: jax.Array) -> jax.Array:
        return jnp.exp(x)

    def right_inverse(self, x: jax.Array) -> jax.Array:
        return jnp.log(jnp.abs(x))


@pytest.mark.parametrize("leave", [True, False])
def test_registered_ones_of_the_users_own(leave: bool) -> None:
    reference, layer = torch.nn.Linear(4, 4).double(), layer_classes()["Linear"](4, 4, rngs=nnx.Rngs(0))
    load(layer, reference)
    for theirs, mine in ((Exponential(), ExponentialMap()), (Symmetric(), SymmetricMap())):
        parametrize.register_parametrization(reference, "weight", theirs)
        new.register_parametrization(layer, "weight", mine)
    assert_state(layer, reference, 1e-12)
    assert new.is_parametrized(layer)
    assert new.is_parametrized(layer, "weight")
    assert not new.is_parametrized(layer, "bias")
    np.testing.assert_allclose(layer.weight, reference.weight.detach().numpy(), rtol=1e-12)
    parametrize.remove_parametrizations(reference, "weight", leave_parametrized=leave)
    new.remove_parametrizations(layer, "weight", leave_parametrized=leave)
    assert_state(layer, reference, 1e-12)
    assert not new.is_parametrized(layer)


def test_errors_name_the_parameter() -> None:
    layer = layer_classes()["Linear"](3, 4, rngs=nnx.Rngs(0))
    with pytest.raises(ValueError, match="'nothing'"):
        old.weight_norm(layer, "nothing")
    with pytest.raises(ValueError, match="n_power_iterations"):
        old.spectral_norm(layer, n_power_iterations=0, rngs=nnx.Rngs(0))
    with pytest.raises(IndexError, match="out of range"):
        new.parametrize_spectral_norm(layer, dim=2, rngs=nnx.Rngs(0))
    with pytest.raises(ValueError, match="sequence"):
        new.remove_parametrizations(new.parametrize_weight_norm(layer), "weight", leave_parametrized=False)


def test_the_verifier_takes_the_copied_code() -> None:
    names = ["weight_norm", "spectral_norm", "parametrize_weight_norm", "parametrize_spectral_norm", "remove_parametrizations"]
    source = Source("nnx_layers.py", ast.parse(render(names)))
    assert [*calls.find(source), *patches.find(source)] == []


@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm"])
@pytest.mark.parametrize("case", SHARED[:2], ids=str)
def test_an_initialiser_fills_what_shares_memory_with_the_parameter(name: str, case: Case) -> None:
    """Before the first call PyTorch's spectrally normalised weight is its original's memory; a weight by norm and direction is a new array."""
    reference, layer = applied(name, Case(case.layer, case.arguments, case.shape))
    weight: Any = reference.weight
    value = torch.randn_like(weight.data)
    torch.nn.init.zeros_(weight)
    weight.data.add_(value)
    array = jnp.asarray(value.numpy())
    layer.kernel[...] = jnp.zeros(layer.kernel.shape)
    layer.kernel.set_value(array.transpose(*range(2, array.ndim), 1, 0))
    assert_state(layer, reference)
    changed = "weight_orig" if name == "spectral_norm" else ""
    assert not changed or np.array_equal(weights.state_dict(layer)[changed], value.numpy())
