"""Every layer row: torch's own signature, a vendored class that takes it, the same state dictionary, and variables where `params` says."""

from __future__ import annotations

import inspect
from operator import attrgetter
from typing import Any, cast

import jax
import jax.numpy as jnp
import pytest
import torch
from flax import nnx

from migrate_agent.tests.tools.vendored.modules import layer_classes
from migrate_agent.tools import weights
from migrate_agent.tools.rewrite.tables.registry import Layer, layers
from migrate_agent.tools.rewrite.tables.signatures import parse_signature

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")  # that path of torch's is for inference without gradients

ROWS = [row for row in layers().values() if row.name.startswith("torch.nn.")]
DEPRECATED = {"min_value", "max_value"}
OVERLOADED = {"Sequential", "RNN", "LSTM", "GRU"}
"""Classes whose constructor takes `*args`; their documentation gives the signature."""


def torch_class(row: Layer) -> Any:
    return attrgetter(row.name.removeprefix("torch.nn."))(torch.nn)


@pytest.mark.parametrize("row", [row for row in ROWS if row.vendored not in OVERLOADED], ids=lambda row: row.name)
def test_signature_is_torchs(row: Layer) -> None:
    signature = parse_signature(row.signature)
    expected = inspect.signature(torch_class(row).__init__).parameters
    plain = [p.name for p in expected.values() if p.name not in {"self", *DEPRECATED} and p.kind is p.POSITIONAL_OR_KEYWORD]
    assert list(signature.names) == plain
    assert list(signature.keyword_only) == [p.name for p in expected.values() if p.kind is p.KEYWORD_ONLY]
    for name, text in signature.defaults.items():
        default = expected[name].default
        assert callable(default) or eval(text) == default


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_vendored_class_takes_the_same_arguments(row: Layer) -> None:
    kinds = inspect.signature(layer_classes()[row.vendored].__init__).parameters
    ours = [name for name, p in kinds.items() if name not in ("self", "rngs") and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    signature = parse_signature(row.signature)
    assert ours == [*signature.names, *signature.keyword_only]
    takes_all = any(p.kind is p.VAR_KEYWORD for p in kinds.values())
    assert takes_all or kinds["rngs"].kind is inspect.Parameter.KEYWORD_ONLY


def evaluate(row: Layer, sample: str) -> tuple[Any, Any]:
    """The torch layer and the vendored one that a sample constructs."""

    def make(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        mine = ours(args), ours(kwargs)
        return torch_class(row)(*args, **kwargs), layer_classes()[row.vendored](*mine[0], **mine[1], rngs=nnx.Rngs(0))

    return cast(tuple[Any, Any], eval(f"make({sample})", {"make": make, "torch": torch}))


def ours(value: Any) -> Any:
    """Arguments of a sample in our terms."""
    if isinstance(value, torch.nn.Linear):
        return layer_classes()["Linear"](value.in_features, value.out_features, rngs=nnx.Rngs(0))
    if isinstance(value, torch.nn.ReLU):
        return jax.nn.relu
    if isinstance(value, torch.nn.Module):
        return layer_classes()[type(value).__name__](8, 2, 16, rngs=nnx.Rngs(0))
    if isinstance(value, torch.Tensor):
        return jnp.asarray(value.detach().numpy())
    if isinstance(value, (list, tuple)):
        return type(value)(ours(item) for item in value)
    return {key: ours(item) for key, item in value.items()} if isinstance(value, dict) else value


@pytest.mark.filterwarnings("ignore:.*has been deprecated:FutureWarning")  # old names of layers
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_samples_have_the_same_state(row: Layer) -> None:
    assert row.samples
    for sample in row.samples:
        theirs, mine = evaluate(row, sample)
        expected = {name: tuple(value.shape) for name, value in theirs.state_dict().items()}
        assert {name: value.shape for name, value in weights.state_dict(mine).items()} == expected
        assert set(weights.parameters(mine)) == set(dict(theirs.named_parameters(remove_duplicate=False)))


@pytest.mark.parametrize("row", [row for row in ROWS if row.params], ids=lambda row: row.name)
def test_params_are_the_variables(row: Layer) -> None:
    _, mine = evaluate(row, row.samples[0])
    found = weights.leaves(mine)
    for attribute, template in row.params.items():
        variable = eval(template.replace("{self}", "mine"), {"mine": mine})
        assert variable is (found[attribute].variable if attribute in found else None)


@pytest.mark.parametrize("row", [row for row in ROWS if isinstance(row.to, str) and row.to and "{" not in row.to], ids=lambda row: row.name)
def test_plain_functions_agree_with_torch(row: Layer) -> None:
    x = torch.tensor([-1e4, -3.0, -1.0, -0.0, 0.0, 0.5, 2.0, 1e4, float("inf"), -float("inf"), float("nan")], dtype=torch.float64)
    x.requires_grad_()
    theirs = torch_class(row)()(x)
    (slope,) = torch.autograd.grad(theirs.nan_to_num(0, 0, 0).sum(), x)
    with jax.enable_x64(True):
        function = eval(str(row.to), {"jax": jax, "jnp": jnp})
        value = jnp.asarray(x.detach().numpy())
        assert jnp.allclose(function(value), theirs.detach().numpy(), rtol=1e-12, atol=0, equal_nan=True)
        mine = jax.vmap(jax.grad(function))(value[:8])
        assert jnp.allclose(mine, slope[:8].numpy(), rtol=1e-12, atol=1e-300)
