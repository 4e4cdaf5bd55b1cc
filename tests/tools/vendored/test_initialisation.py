"""Default initialisation: each parameter has the distribution of torch's (two-sample Kolmogorov-Smirnov test)."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import torch
from flax import nnx
from scipy import stats  # type: ignore[import-untyped]

from migrate_agent.tests.tools.vendored.modules import layer_classes
from migrate_agent.tools import weights

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")  # that path of torch's is for inference without gradients

LAYERS: dict[str, tuple[Any, ...]] = {
    "Linear": (48, 64), "Bilinear": (16, 24, 32), "Embedding": (50, 32, 3), "EmbeddingBag": (50, 32), "PReLU": (5,),
    "Conv1d": (8, 32, 5), "Conv2d": (8, 32, (3, 5)), "Conv3d": (8, 16, 3), "LayerNorm": ((6, 8),), "RMSNorm": (48,),
    "ConvTranspose1d": (32, 8, 5), "ConvTranspose2d": (32, 8, (3, 5)), "ConvTranspose3d": (16, 8, 3),
    "GroupNorm": (2, 48), "BatchNorm1d": (48,), "BatchNorm2d": (48,), "BatchNorm3d": (48,), "InstanceNorm2d": (48, 1e-5, 0.1, True, True),
    "MultiheadAttention": (32, 4, 0.0, True, True), "RNN": (24, 32, 2), "LSTM": (24, 32, 2), "GRU": (24, 32, 2), "RNNCell": (24, 32),
    "LSTMCell": (24, 32), "GRUCell": (24, 32), "TransformerEncoderLayer": (32, 4, 48), "TransformerDecoderLayer": (32, 4, 48),
    "Transformer": (32, 4, 1, 1, 48), "LinearCrossEntropyLoss": (48, 64),
}  # fmt: skip
"""Layers with parameters, and arguments that make them large enough to judge."""

QUICK = frozenset({"Linear", "Embedding", "Conv2d", "LayerNorm", "BatchNorm2d", "MultiheadAttention", "LSTM"})
"""One of each kind; CI tests the others."""

DRAWS = 4
LEVEL = 1e-6
"""How small a p-value is a difference: about 150 parameters are tested, with fixed seeds."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.ci) for name in LAYERS])
def test_same_distribution(name: str) -> None:
    torch.manual_seed(0)
    arguments = LAYERS[name]
    theirs = [{k: v.numpy() for k, v in getattr(torch.nn, name)(*arguments).state_dict().items()} for _ in range(DRAWS)]
    mine = [weights.state_dict(layer_classes()[name](*arguments, rngs=nnx.Rngs(seed))) for seed in range(DRAWS)]
    assert theirs[0].keys() == mine[0].keys()
    for key, first in theirs[0].items():
        drawn, expected = (np.stack([state[key] for state in states]) for states in (mine, theirs))
        assert drawn.dtype == first.dtype or drawn.dtype.kind == "i"
        if np.ptp(expected) == 0:
            np.testing.assert_array_equal(drawn, expected, err_msg=key)
        else:
            assert stats.ks_2samp(drawn.ravel(), expected.ravel()).pvalue > LEVEL, key
            np.testing.assert_allclose(np.abs(drawn).max(), np.abs(expected).max(), rtol=0.25, err_msg=key)
            assert not np.array_equal(drawn[0], drawn[1]), key


def test_a_wrong_scale_is_noticed() -> None:
    """The test's own power: lecun-normal, NNX's default, is not torch's distribution."""
    torch.manual_seed(0)
    theirs = torch.nn.Linear(48, 64).weight.detach().numpy()
    mine = nnx.Linear(48, 64, rngs=nnx.Rngs(0)).kernel[...]
    assert stats.ks_2samp(np.asarray(mine).ravel(), theirs.ravel()).pvalue < LEVEL


def test_padding_row_starts_at_zero() -> None:
    table = layer_classes()["Embedding"](5, 3, 2, rngs=nnx.Rngs(0)).weight
    np.testing.assert_array_equal(table[2], 0)
    assert (table[1] != 0).all()


def test_copies_share_weights_but_not_randomness() -> None:
    layers = layer_classes()
    encoder = layers["TransformerEncoder"](layers["TransformerEncoderLayer"](8, 2, 16, rngs=nnx.Rngs(0)), 2)
    first, second = encoder.layers
    np.testing.assert_array_equal(first.linear1.weight, second.linear1.weight)
    assert first.linear1.kernel is not second.linear1.kernel
    x = jax.numpy.ones((4, 32))
    assert not np.array_equal(first.dropout(x), second.dropout(x))
