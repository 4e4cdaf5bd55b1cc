"""What checkpoints of both sides hold."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from migrate_agent.tools.programs.judge.compare import Pair, Ran, contents
from migrate_agent.tools.programs.judge.fingerprints import fingerprint, is_among
from migrate_agent.tools.programs.judge.jax_files import jax_files
from migrate_agent.tools.programs.judge.torch_files import torch_files
from migrate_agent.tools.programs.vendored.checkpoints import write_checkpoint

WEIGHT = np.arange(6.0, dtype=np.float32).reshape(2, 3)
MOMENT = np.full((2, 3), 0.25, np.float32)
STATE = {"model": {"fc.weight": torch.from_numpy(WEIGHT)}, "optimizer": {"state": {0: {"exp_avg": torch.from_numpy(MOMENT)}}}, "epoch": 3}


def _files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def _orbax(folder: Path, tree: Any) -> None:
    write_checkpoint(tree, folder / "ckpt.pt")


def _safetensors(folder: Path, tree: Any) -> None:
    save_file({key: np.asarray(value) for key, value in tree.items()}, str(folder / "ckpt.safetensors"))


WHOLE = {"model": jnp.asarray(WEIGHT.T), "moment": jnp.asarray(MOMENT.T), "epoch": 3}
STACKED = jnp.stack([jnp.zeros((3, 2)), jnp.asarray(WEIGHT.T)])
ROWS: tuple[tuple[Callable[[Path, Any], None], dict[str, Any], str], ...] = (
    (_orbax, WHOLE, "pass"),
    (_orbax, WHOLE | {"epoch": 4}, "fail"),
    (_orbax, {key: value for key, value in WHOLE.items() if key != "moment"}, "fail"),
    (_orbax, WHOLE | {"model": jnp.asarray(WEIGHT.T) * 1.001}, "fail"),
    (_safetensors, {"weight": WEIGHT, "moment": MOMENT, "epoch": np.array([3])}, "pass"),
    (_safetensors, {"weight": -WEIGHT, "moment": MOMENT, "epoch": np.array([3])}, "fail"),
)


@pytest.mark.parametrize(("layers", "status"), [({2}, "pass"), ({3}, "fail"), ((), "fail")])
def test_layers_that_lie_as_one_array(tmp_path: Path, layers: set[int], status: str) -> None:
    """What a layer of a stack has counts by itself, where the program's modules have stacks of so many layers."""
    for name in ("torch", "jax"):
        (tmp_path / name).mkdir()
    torch.save(STATE, tmp_path / "torch" / "ckpt.pt")
    _orbax(tmp_path / "jax", WHOLE | {"model": STACKED})
    theirs = Ran({"contents": torch_files(tmp_path / "torch", ["ckpt.pt"])}, {})
    ours = Ran({"contents": jax_files(tmp_path / "jax", _files(tmp_path / "jax"), layers)}, {})
    assert contents(Pair(theirs, theirs, ours)).status == status


@pytest.mark.parametrize(("write", "tree", "status"), ROWS)
def test_what_checkpoints_hold(tmp_path: Path, write: Callable[[Path, Any], None], tree: dict[str, Any], status: str) -> None:
    """Whatever their format, and however axes lie."""
    for name in ("torch", "jax"):
        (tmp_path / name).mkdir()
    torch.save(STATE, tmp_path / "torch" / "ckpt.pt")
    write(tmp_path / "jax", tree)
    theirs = Ran({"contents": torch_files(tmp_path / "torch", ["ckpt.pt"])}, {})
    ours = Ran({"contents": jax_files(tmp_path / "jax", _files(tmp_path / "jax"))}, {})
    assert contents(Pair(theirs, theirs, ours)).status == status


def test_modules_whose_class_is_gone_are_read(tmp_path: Path) -> None:
    """As those of a script that has ended are."""
    space: dict[str, Any] = {"torch": torch, "__name__": "gone"}
    exec(
        "class Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = torch.nn.Linear(3, 2)\n", space
    )
    sys.modules["gone"] = SimpleNamespace(**space)  # type: ignore[assignment]
    try:
        torch.save({"model": space["Net"](), "epoch": 3}, tmp_path / "whole.pt")
    finally:
        del sys.modules["gone"]
    row = torch_files(tmp_path, ["whole.pt"])["whole.pt"]
    assert row is not None
    assert (sorted(row["tensors"]), row["numbers"]) == (["model.fc.bias", "model.fc.weight"], {"epoch": 3.0})


def test_a_file_that_cannot_be_read_is_not_compared() -> None:
    """And says so: a whole module, whose class is gone."""
    empty: dict[str, Any] = {"tensors": {}, "numbers": {}}
    for files, count in (({"model.pt": None}, 0), ({"model.pt": None, "state.pt": empty}, 1)):
        theirs = Ran({"contents": files}, {})
        verdict = contents(Pair(theirs, theirs, Ran({"contents": []}, {})))
        assert (verdict.status, verdict.detail) == ("unverified", f"{count} files compared; not compared: model.pt")


@pytest.mark.parametrize(("other", "same"), [(np.array, True), (np.transpose, True), (np.zeros_like, False), (np.negative, False)])
def test_masks_that_are_not_finite(other: Callable[[Any], Any], same: bool) -> None:
    """A mask of attention is the same as itself, with its axes moved too, and as no other."""
    mask = np.triu(np.full((3, 3), -np.inf), 1)
    assert is_among(fingerprint(mask), [fingerprint(other(mask))]) == same
