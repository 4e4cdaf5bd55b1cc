"""Units whose rewrites are written by hand, as a repository and a tree of its rewrite, and the extra that may be missing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.portable.ahead import Ahead, has_compiler
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Example

TORCH = """
import torch

class Net(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = torch.nn.Linear(width, 2 * width)
        self.second = torch.nn.Linear(2 * width, width)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))
"""
HEAD = """
import jax
import jax.numpy as jnp
from flax import nnx
from jax.experimental import pallas as pl


def double(source, target):
    target[...] = source[...] * 2


def doubled(x, block, body=double):
    spec = pl.BlockSpec(block, lambda i, j: (i, j))
    grid = (x.shape[0] // block[0], x.shape[1] // block[1])
    out = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(body, out_shape=out, grid=grid, in_specs=[spec], out_specs=spec)(x)


class Net(nnx.Module):
    def __init__(self, width, *, rngs):
        self.first = nnx.Linear(width, 2 * width, rngs=rngs)
        self.second = nnx.Linear(2 * width, width, rngs=rngs)
        self.blocks = nnx.List([Block(width, rngs=rngs) for _ in range(3)] if "Block" in globals() else [])

    def __call__(self, x, mask=None):
        x = self.second(nnx.relu(self.first(x)))
"""
BODIES: Mapping[str, str] = {
    "plain": "        return x\n",
    "mean": "        return x - x.mean(0)\n",
    "masked": "        return (x * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)\n",
    "bad block": "        return doubled(x, (4, 100))\n",
    "too much vmem": """        return doubled(x, x.shape, corner)


def corner(source, target):
    target[:8, :128] = source[:8, :128]  # little to compile
""",
    "live kernel": "        return doubled(x, (16, 128))\n",
    "dead kernel": "        doubled(x, (16, 128))\n        return x\n",
    "half": "        return doubled(x.astype(jnp.float16), (16, 128))\n",
    "too much hbm": "        return (x[:, None, :, None] * x[None, :, None, :]).sum((1, 3)) @ (x[:, :, None] * x.ravel()[None, None, :]).max(0)\n",
    "blocks": """        for block in self.blocks:
            x = block(x)
        return x


class Block(nnx.Module):
    def __init__(self, width, *, rngs):
        self.fc = nnx.Linear(width, width, rngs=rngs)

    def __call__(self, x):
        return x + jnp.tanh(self.fc(x))
""",
}
"""What the rewrite returns, by name."""


def ahead(folder: Path, sandbox: Sandbox, body: str, shape: str = "16, 128", width: int = 128) -> Ahead:
    """The unit with this rewrite. `shape` is that of the example's input."""
    repository, candidate = folder / "repository", folder / "candidate"
    for place in (repository, candidate):
        place.mkdir(parents=True)
    (repository / "model.py").write_text(TORCH)
    (candidate / "model_jax.py").write_text(HEAD + BODIES[body])
    inventory = scan(repository)
    example = Example("model.py:Net", f"{width}", f"torch.randn({shape})")
    translated = Example("model.py:Net", f"{width}, rngs=rngs", "")
    return Ahead(inventory.unit("model.py:Net"), example, translated, inventory, candidate, sandbox)


def needs_compiler() -> None:
    """Skip without the extra `tpu`, unless the tests are told that it is there."""
    if not has_compiler():
        assert "tpu" not in os.environ.get("MIGRATE_AGENT_REQUIRE", "").split(","), "the extra tpu is demanded, and libtpu is not installed"
        pytest.skip("the TPU compiler is not installed: pip install migrate-agent[tpu]")
