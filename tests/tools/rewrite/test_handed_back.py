"""Numbers that a traced function only hands back stay arrays; numbers that decide, or are computed with, do not."""

from __future__ import annotations

import importlib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx

from migrate_agent.tests.tools.rewrite.migrating import migrated

CALLS = {"handed_back": dict.fromkeys(("HandsBack", "Computes", "Counts"), ("", "torch.randn(3, 4)"))}


def test_numbers_are_handed_back_as_arrays(tmp_path: Path) -> None:
    with migrated(Path(__file__).with_name("fixtures"), CALLS, tmp_path) as work:
        text = work.draft.files["handed_back_jax.py"]
        assert text.count("lax.stop_gradient(") == 5
        assert {hole.span.line for hole in work.draft.holes} == {25, 31}
        x = torch.randn(3, 4, dtype=torch.float64)
        theirs = importlib.import_module("handed_back").HandsBack()(x)
        ours = jax.jit(importlib.import_module("handed_back_jax").HandsBack(rngs=nnx.Rngs(0)).__call__)(jnp.array(x.numpy()))
        for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            np.testing.assert_allclose(one, float(other), rtol=1e-12)
