"""Flax's own layers over channels at axis 1 compute what torch's do, in outputs, gradients of inputs and statistics, in both modes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from migrate_agent.tools.vendored.numeric import fan_in_bias, fan_in_kernel
from migrate_agent.tools.vendored.plain import channels_first_pool
from migrate_agent.tools.vendored.plain_layers import (
    ChannelsFirstConv,
    ChannelsFirstConvTranspose,
    ChannelsFirstGroupNorm,
    LastAxisLayerNorm,
    MachineEpsilonRMSNorm,
    SampleBatchNorm,
)
from migrate_agent.tools.weights import load_state_dict, state_dict

pytestmark = pytest.mark.ci

CASES: list[tuple[torch.nn.Module, Callable[[nnx.Rngs], Any], tuple[int, ...]]] = [
    (
        torch.nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2),
        lambda r: ChannelsFirstConv(4, 6, (3, 3), strides=2, padding=1, feature_group_count=2, rngs=r),
        (2, 4, 9, 8),
    ),
    (torch.nn.Conv2d(4, 6, (3, 5), padding=(1, 2)), lambda r: ChannelsFirstConv(4, 6, (3, 5), padding=(1, 2), rngs=r), (4, 9, 8)),
    (
        torch.nn.Conv1d(4, 6, 4, padding="same", dilation=2),
        lambda r: ChannelsFirstConv(4, 6, (4,), padding="SAME", kernel_dilation=2, rngs=r),
        (2, 4, 9),
    ),
    (torch.nn.Conv2d(4, 6, 1, stride=3), lambda r: ChannelsFirstConv(4, 6, (1, 1), strides=3, rngs=r), (2, 4, 8, 7)),
    (
        torch.nn.ConvTranspose2d(4, 6, (3, 4), 2, 1, (1, 0)),
        lambda r: ChannelsFirstConvTranspose(4, 6, (3, 4), strides=2, padding=[(1, 2), (2, 2)], transpose_kernel=True, rngs=r),
        (2, 4, 5, 6),
    ),
    (
        torch.nn.ConvTranspose1d(4, 6, 2, 3, 2, bias=False),
        lambda r: ChannelsFirstConvTranspose(4, 6, (2,), strides=3, padding=[(-1, -1)], transpose_kernel=True, use_bias=False, rngs=r),
        (4, 7),
    ),
    (torch.nn.BatchNorm2d(4), lambda r: SampleBatchNorm(4, rngs=r), (2, 4, 9, 8)),
    (torch.nn.BatchNorm1d(4, 1e-3, 0.01), lambda r: SampleBatchNorm(4, 1e-3, 0.01, rngs=r), (7, 4)),
    (torch.nn.RMSNorm(5), lambda r: MachineEpsilonRMSNorm(5, rngs=r), (2, 4, 5)),
    (torch.nn.RMSNorm(5, elementwise_affine=False), lambda r: MachineEpsilonRMSNorm(5, use_scale=False, rngs=r), (4, 5)),
    (torch.nn.RMSNorm(5, 0.1), lambda r: nnx.RMSNorm(5, epsilon=0.1, rngs=r), (2, 4, 5)),
    (torch.nn.GroupNorm(2, 4), lambda r: ChannelsFirstGroupNorm(2, 4, rngs=r), (2, 4, 5)),
    (
        torch.nn.Sequential(torch.nn.ReLU(), torch.nn.MaxPool2d(3, 2, 1)),
        lambda r: nnx.Sequential(jax.nn.relu, partial(channels_first_pool, nnx.max_pool, window=(3, 3), strides=(2, 2), padding=1)),
        (2, 4, 9, 8),
    ),
    (
        torch.nn.Sequential(torch.nn.AvgPool2d(3, 2, 1)),
        lambda r: nnx.Sequential(partial(channels_first_pool, nnx.avg_pool, window=(3, 3), strides=(2, 2), padding=1)),
        (4, 9, 8),
    ),
    (torch.nn.LayerNorm(5, 1e-6), lambda r: LastAxisLayerNorm(5, 1e-6, rngs=r), (2, 4, 5)),
]


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize(("layer", "make", "shape"), CASES, ids=[str(case[0]) for case in CASES])
def test_a_layer_is_as_torchs(layer: torch.nn.Module, make: Callable[[nnx.Rngs], Any], shape: tuple[int, ...]) -> None:
    layer, port = layer.double(), make(nnx.Rngs(0))
    load_state_dict(port, {name: value.numpy() for name, value in layer.state_dict().items()})
    x = torch.tensor(np.random.default_rng(0).normal(0.5, 3, shape), requires_grad=True)

    @nnx.jit
    def run(port: Any, x: jax.Array) -> Any:
        return nnx.grad(lambda port, x: (jnp.sin(y := port(x)).sum(), y), argnums=1, has_aux=True)(port, x)

    for training in (True, False):
        layer.train(training)
        port.train() if training else port.eval()
        expected = layer(x)
        (slope,) = torch.autograd.grad(expected.sin().sum(), x)
        gradient, result = run(port, jnp.array(x.detach().numpy()))
        np.testing.assert_allclose(result, expected.detach().numpy(), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(gradient, slope.numpy(), rtol=1e-8, atol=1e-12)
        state = state_dict(port)
        for name, value in layer.state_dict().items():
            np.testing.assert_allclose(state[name], value.numpy(), rtol=1e-12, err_msg=name)


NORMS: list[tuple[torch.nn.Module, Callable[[nnx.Rngs], Any]]] = [
    (torch.nn.BatchNorm1d(4), lambda r: SampleBatchNorm(4, rngs=r)),
    (torch.nn.GroupNorm(2, 4), lambda r: ChannelsFirstGroupNorm(2, 4, rngs=r)),
]


@pytest.mark.parametrize(("layer", "make"), NORMS, ids=[str(case[0]) for case in NORMS])
def test_a_norm_gives_the_dtype_of_its_input(layer: torch.nn.Module, make: Callable[[nnx.Rngs], Any]) -> None:
    x = np.random.default_rng(0).normal(0.5, 3, (2, 4, 5)).astype(np.float32)
    port = make(nnx.Rngs(0))
    for training in (True, False):
        port.train() if training else port.eval()
        expected = layer.train(training)(torch.tensor(x).bfloat16())
        result = port(jnp.asarray(x, jnp.bfloat16))
        assert (str(expected.dtype), result.dtype) == ("torch.bfloat16", jnp.bfloat16)
        np.testing.assert_allclose(result.astype(jnp.float32), expected.detach().float().numpy(), rtol=1e-2, atol=1e-2)


def test_a_layer_without_inputs_gives_zeros_as_torchs() -> None:
    layer = nnx.Linear(0, 3, kernel_init=fan_in_kernel, bias_init=fan_in_bias(0), rngs=nnx.Rngs(0))
    assert layer(jnp.ones((2, 0))).tolist() == [[0.0] * 3] * 2
