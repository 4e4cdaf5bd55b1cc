"""The names that NNX's layers hold are known."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from flax import nnx

from migrate_agent.tools.rewrite.analysis.taken_names import COMMON, LAYERS
from migrate_agent.tools.vendored.conv_layers import Conv2d
from migrate_agent.tools.vendored.embedding import Embedding
from migrate_agent.tools.vendored.linear import Linear
from migrate_agent.tools.vendored.norm_layers import BatchNorm1d, GroupNorm, LayerNorm, RMSNorm

CASES = (
    (Linear, (2, 3)),
    (Conv2d, (2, 2, 3)),
    (Embedding, (2, 3)),
    (LayerNorm, (3,)),
    (RMSNorm, (3,)),
    (GroupNorm, (2, 4)),
    (BatchNorm1d, (3,)),
)


@pytest.mark.parametrize(("layer", "arguments"), CASES, ids=lambda value: getattr(value, "__name__", ""))
def test_what_a_layer_holds_is_known(layer: Any, arguments: tuple[int, ...]) -> None:
    held = {name for name in vars(layer(*arguments, rngs=nnx.Rngs(0))) if not name.startswith("_")}
    known = COMMON.union(*(names for start, names in LAYERS.items() if layer.__name__.startswith(start)))
    assert held - set(dir(getattr(torch.nn, layer.__name__)(*arguments))) <= known
