"""What is renamed keeps its name in state dictionaries."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import jax.numpy as jnp
from flax import nnx

from migrate_agent.tools import weights
from migrate_agent.tools.vendored.linear import Linear
from tests.tools.rewrite.snippets import rewrite_snippet


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
