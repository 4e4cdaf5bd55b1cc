"""The names that NNX's layers hold are known, and what is renamed keeps its name in state dictionaries."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import jax.numpy as jnp
import pytest
import torch
from flax import nnx

from migrate_agent.tools import weights
from migrate_agent.tools.rewrite.analysis.taken_names import COMMON, LAYERS
from migrate_agent.tools.vendored.conv_layers import Conv2d
from migrate_agent.tools.vendored.embedding import Embedding
from migrate_agent.tools.vendored.linear import Linear
from migrate_agent.tools.vendored.norm_layers import BatchNorm1d, GroupNorm, LayerNorm, RMSNorm
from tests.tools.rewrite.snippets import rewrite_snippet

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


def test_the_state_keeps_its_name() -> None:
    class Masked(Linear):
        torch_names: ClassVar = {"mask_": "mask"}

        def __init__(self, rngs: nnx.Rngs) -> None:
            super().__init__(2, 2, rngs=rngs)
            self.mask_ = nnx.Variable(jnp.ones(2))

    class Below(Masked):
        torch_names: ClassVar = {"dtype_": "dtype"}

        def __init__(self, rngs: nnx.Rngs) -> None:
            super().__init__(rngs)
            self.dtype_ = nnx.Variable(jnp.ones(2))

    assert set(weights.state_dict(Below(nnx.Rngs(0)))) == {"weight", "bias", "mask", "dtype"}


def test_a_name_in_a_string_is_left_open(tmp_path: Path) -> None:
    source = (
        "from torch import nn\n\nclass M(nn.Linear):\n    def __init__(self, d):\n        super().__init__(d, d)\n"
        "        self.dtype = d\n\n    def forward(self, x):\n        return x * getattr(self, 'dtype')\n"
    )
    _, holes = rewrite_snippet(tmp_path, source)
    assert [hole.code for hole in holes] == ["taken-name"]
