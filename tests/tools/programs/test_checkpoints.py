"""Checkpoints of generated scripts."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import optax
from flax import nnx

from migrate_agent.tools.programs.vendored.checkpoints import load_object_state, object_state, read_checkpoint, write_checkpoint


class Net(nnx.Module):
    """With a list of modules, dropout and batch norm: all kinds of state."""

    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.layers = nnx.List([nnx.Linear(2, 2, rngs=rngs) for _ in range(2)])
        self.norm = nnx.BatchNorm(2, rngs=rngs)
        self.drop = nnx.Dropout(0.1, rngs=rngs)


def test_a_checkpoint_goes_there_and_back(tmp_path: Path) -> None:
    """Bitwise, with plain values beside arrays."""
    model, other = Net(rngs=nnx.Rngs(0)), Net(rngs=nnx.Rngs(1))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    args = {"lr": 0.1, "input": None, "device": "cpu", "betas": (0.9, 0.95)}
    for step in (3, 4):  # the second takes the place of the first
        write_checkpoint(
            {"model": object_state(model), "optimizer": object_state(optimizer), "step": step, "args": args}, tmp_path / "last.pt"
        )
    restored = read_checkpoint(tmp_path / "last.pt")
    assert (restored["step"], restored["args"]) == (4, args)
    load_object_state(other, restored["model"])
    load_object_state(optimizer, restored["optimizer"])
    ours, theirs = (jax.tree.leaves(nnx.state(one, nnx.Not(nnx.RngState))) for one in (other, model))
    assert len(ours) == len(theirs)
    assert all(np.array_equal(one, two) for one, two in zip(ours, theirs, strict=True))
    assert (other.drop.rngs.key[...] == model.drop.rngs.key[...]).all()
