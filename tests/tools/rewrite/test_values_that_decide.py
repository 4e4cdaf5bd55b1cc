"""What None or a tensor decides, numbers that a function hands back from a list, and code below a stub."""

from __future__ import annotations

import importlib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx

from migrate_agent.tests.tools.rewrite.migrating import migrated

SOURCE = """import pickle

import torch
from torch import nn


def scaled_by(x, scale=None):
    y = x + 1
    if scale:
        y = scale.expand_as(y) * y
    return y


def first_of(x):
    return x.view(-1).data.tolist()[0]


def gathered(x, size=1):
    if size == 1:
        return [x]
    buffer = pickle.dumps(x)
    rows = []
    for _ in range(size):
        rows.append(torch.ByteTensor(size=(len(buffer),)))
    sizes = [int(row.numel()) for row in rows]
    padding = torch.ByteTensor(size=(max(sizes) - len(buffer),))
    rows.append(padding)
    return rows


class Uses(nn.Module):
    def forward(self, x, scale):
        y = scaled_by(x) + scaled_by(x, scale) + scaled_by(x, scale * 0)
        return y, y[0, first_of(y.argmax(1))], gathered(y)[0]
"""


def test_the_mirror_traces_them(tmp_path: Path) -> None:
    (tmp_path / "decides.py").write_text(SOURCE)
    calls = {"decides": {"Uses": ("", "torch.randn(3, 4), torch.tensor([2.0])")}}
    with migrated(tmp_path, calls, tmp_path) as work:
        text = work.draft.files["decides_jax.py"]
        assert not work.draft.holes
        assert "if scale is not None:" in text and "tolist" not in text and "was not exercised" in text and "ByteTensor" not in text
        x, scale = torch.randn(3, 4, dtype=torch.float64), torch.tensor([2.0], dtype=torch.float64)
        theirs = importlib.import_module("decides").Uses()(x, scale)
        ours = jax.jit(importlib.import_module("decides_jax").Uses(rngs=nnx.Rngs(0)).__call__)(
            jnp.array(x.numpy()), jnp.array(scale.numpy())
        )
        for one, other in zip(jax.tree.leaves(ours), theirs, strict=True):
            np.testing.assert_allclose(one, other.numpy(), rtol=1e-12)
