"""Checkpoints of generated scripts."""

from __future__ import annotations

import shutil
from pathlib import Path

import jax
import numpy as np
import optax
import pytest
from flax import nnx

from migrate_agent.tools.programs.vendored.checkpoints import (
    copy_checkpoint,
    load_object_state,
    move_checkpoint,
    object_state,
    read_checkpoint,
    remove_checkpoint,
    write_checkpoint,
)


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


def test_checkpoints_are_copied_moved_and_removed_in_place_of_others(tmp_path: Path) -> None:
    """As files are: into folders too, but into none that is a checkpoint."""
    last, best = tmp_path / "last.pt", tmp_path / "best.pt"
    for step in (1, 2):
        write_checkpoint({"step": step}, last)
        copy_checkpoint(last, best)
    (tmp_path / "all").mkdir()
    assert copy_checkpoint(str(last), str(tmp_path / "all")) == str(tmp_path / "all" / "last.pt")
    write_checkpoint({"step": 3}, last)
    move_checkpoint(last, best)
    assert [read_checkpoint(path)["step"] for path in (best, tmp_path / "all" / "last.pt")] == [3, 2]
    assert not last.exists()
    remove_checkpoint(best)
    assert [path.name for path in tmp_path.iterdir()] == ["all"]


def test_files_are_copied_moved_and_removed_too(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("loss")
    copy_checkpoint(log, tmp_path / "copy.txt")
    move_checkpoint(log, tmp_path / "moved.txt")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"copy.txt": "loss", "moved.txt": "loss"}
    remove_checkpoint(tmp_path / "copy.txt")
    assert not (tmp_path / "copy.txt").exists()


def test_a_checkpoint_on_itself_stays(tmp_path: Path) -> None:
    write_checkpoint({"step": 1}, tmp_path / "last.pt")
    with pytest.raises(shutil.SameFileError):
        copy_checkpoint(tmp_path / "last.pt", tmp_path / "last.pt")
    move_checkpoint(tmp_path / "last.pt", tmp_path / "last.pt")
    with pytest.raises(FileNotFoundError):
        remove_checkpoint(tmp_path / "none.pt")
    assert read_checkpoint(tmp_path / "last.pt") == {"step": 1}


def test_a_folder_that_is_no_checkpoint_is_not_removed(tmp_path: Path) -> None:
    """As `os.remove` refuses it: scripts remove what `glob` gives, and go on after an error."""
    (tmp_path / "data").mkdir()
    with pytest.raises(OSError):
        remove_checkpoint(tmp_path / "data")
    assert (tmp_path / "data").is_dir()
