"""Which tensor belongs where: wrappers and prefixes are seen through, ties are known, and what does not fit is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from migrate_agent.tools.checkpoint.convert import to_jax, to_torch
from migrate_agent.tools.checkpoint.files import Array, CheckpointError, Tensor, read_tensors, save, shard_files
from migrate_agent.tools.checkpoint.matching import Entry, Group, match, match_port

ENTRIES = (
    Entry("net.wte.weight", "net.wte.embedding", (7, 4), None, "float32"),
    Entry("net.blocks.0.fc.weight", "net.blocks.0.fc.kernel", (3, 4), (1, 0), "float32"),
    Entry("net.blocks.0.fc.bias", "net.blocks.0.fc.bias", (3,), None, "float32"),
    Entry("net.blocks.1.conv.weight", "net.blocks.1.conv.kernel", (5, 2, 3), (2, 1, 0), "float32"),
    Entry("net.bn.num_batches_tracked", "net.bn.num_batches_tracked", (), None, "int32"),
    Entry("head.weight", "net.wte.embedding", (7, 4), None, "float32"),
)


def group(names: Mapping[str, str], *path: str) -> Group:
    """Tensors of the entries' shapes: name in the checkpoint → entry's name."""
    shapes = {entry.name: entry.shape for entry in ENTRIES}
    return Group(path, {name: Tensor(Path("x"), name, shapes.get(old, (1,)), "F32") for name, old in names.items()})


def spelt(spelling: Callable[[str], str], *but: str) -> dict[str, str]:
    return {spelling(entry.name): entry.name for entry in ENTRIES if entry.name not in but}


OTHER = Group(("optimizer", "state"), {"exp_avg": Tensor(Path("x"), "exp_avg", (7, 4), "F32")})
CASES: dict[str, tuple[tuple[Group, ...], tuple[str, ...]]] = {
    "plain": ((group(spelt(str)),), ()),
    "inside": ((OTHER, group(spelt(str), "state_dict")), ("taken from `state_dict`",)),
    "deep": ((group(spelt(str), "ckpt", "model"), OTHER), ("taken from `ckpt.model`",)),
    "data parallel": ((group(spelt("module.{}".format)),), ("prefix `module.` taken off names",)),
    "compiled": ((group(spelt("_orig_mod.{}".format)),), ("`_orig_mod.` taken out of names",)),
    "both": (
        (group(spelt("module._orig_mod.{}".format), "model"),),
        ("taken from `model`", "`_orig_mod.` taken out of names", "prefix `module.` taken off names"),
    ),
    "compiled inside": ((group(spelt(lambda name: name.replace("blocks.0", "blocks.0._orig_mod"))),), ("`_orig_mod.` taken out of names",)),
    "any prefix": ((group(spelt("trainer.model.{}".format)),), ("prefix `trainer.model.` taken off names",)),
    "first name missing": ((group(spelt("module.{}".format, "net.wte.weight")),), ("prefix `module.` taken off names",)),
    "without the port's": (
        (group({name.removeprefix("net."): old for name, old in spelt(str, "head.weight").items()}),),
        ("prefix `net.` put before names",),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_wrappers_are_seen_through_and_said(case: str) -> None:
    groups, said = CASES[case]
    found = match(ENTRIES, groups)
    assert found.wrappers == said
    assert found.fits, [row for row in found.rows if row.kind != "matches"]


def test_the_copy_that_fits_best_is_taken() -> None:
    part = group({name: name for name in list(spelt(str))[:2]}, "ema")
    assert match(ENTRIES, (part, group(spelt(str), "model"))).wrappers == ("taken from `model`",)
    assert match(ENTRIES, (group(spelt(str), "model"), part)).wrappers == ("taken from `model`",)


def test_what_does_not_fit_is_told() -> None:
    names = {**spelt(str, "net.blocks.0.fc.bias"), "net.blocks.0.mask": "", "head.weight": "net.blocks.0.fc.bias"}
    found = match(ENTRIES, (group(names),))
    told = {row.entry.name if row.entry else row.name: row.kind for row in found.rows if row.kind != "matches"}
    assert told == {"net.blocks.0.fc.bias": "missing", "head.weight": "shape", "net.blocks.0.mask": "extra"}
    assert not found.fits


def test_a_tied_name_may_be_left_out_and_not_both() -> None:
    for left in ("head.weight", "net.wte.weight"):
        found = match(ENTRIES, (group(spelt(str, left)),))
        assert found.fits
        assert [row.entry.name for row in found.rows if row.kind == "tied" and row.entry] == [left]
    assert match(ENTRIES, (group(spelt(str, "head.weight", "net.wte.weight")),)).count("missing") == 2


def arrays() -> dict[str, Array]:
    rng = np.random.default_rng(0)
    found = {entry.name: np.asarray(rng.normal(size=entry.shape), np.float32) for entry in ENTRIES if entry.dtype == "float32"}
    return {**found, "head.weight": found["net.wte.weight"]}


def test_arrays_go_there_and_back(tmp_path: Path) -> None:
    state = {**arrays(), "net.bn.num_batches_tracked": np.array(7, np.int64)}
    save(tmp_path / "torch.safetensors", state)
    there = to_jax(match(ENTRIES, (Group((), read_tensors(shard_files(tmp_path / "torch.safetensors"))),)))
    assert {name: array.shape for name, array in there.items()} == {entry.path: entry.stored for entry in ENTRIES}
    np.testing.assert_array_equal(there["net.blocks.1.conv.kernel"], state["net.blocks.1.conv.weight"].transpose(2, 1, 0))
    assert there["net.bn.num_batches_tracked"].dtype == np.int32
    save(tmp_path / "port.safetensors", there)
    back = match_port(ENTRIES, read_tensors((tmp_path / "port.safetensors",)))
    assert back.fits
    found = to_torch(back)
    assert found.keys() == state.keys()
    for name, array in state.items():
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"head.weight": np.zeros((7, 4), np.float32)}, "net.wte.weight and head.weight are one tied variable in the port, but differ"),
        ({"net.bn.num_batches_tracked": np.array(2**40, np.int64)}, "net.bn.num_batches_tracked holds integers that do not fit"),
    ],
)
def test_values_that_a_port_cannot_hold(change: Mapping[str, Array], words: str, tmp_path: Path) -> None:
    save(tmp_path / "x.safetensors", {**arrays(), "net.bn.num_batches_tracked": np.array(1, np.int64), **change})
    with pytest.raises(CheckpointError, match=words):
        to_jax(match(ENTRIES, (Group((), read_tensors((tmp_path / "x.safetensors",))),)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "is no index of a checkpoint"),
        ("[]", "is no index of a checkpoint"),
        ('{"weight_map": {"a": "../x.safetensors"}}', "names files outside of its folder"),
        ('{"weight_map": {"a": "x.safetensors"}}', "names x.safetensors, which is not there"),
        ('{"weight_map": {}}', "names no file, which is not there"),
    ],
)
def test_broken_indices(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(text)
    with pytest.raises(CheckpointError, match=words):
        shard_files(tmp_path)


def test_a_name_in_two_shards(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save(tmp_path / f"{name}.safetensors", {"w": np.ones(2)})
    with pytest.raises(CheckpointError, match=r"w stands in both a.safetensors and b.safetensors"):
        read_tensors((tmp_path / "a.safetensors", tmp_path / "b.safetensors"))


STACKED = tuple(Entry(f"h.{number}.fc.weight", "h.layers.fc.kernel", (3, 4), (1, 0), "float32", (number,)) for number in range(2))


def test_layers_of_a_stack_are_parts_of_one_array_both_ways(tmp_path: Path) -> None:
    arrays: dict[str, Array] = {f"h.{number}.fc.weight": np.random.default_rng(number).normal(size=(3, 4)) for number in range(2)}
    save(tmp_path / "torch.safetensors", arrays)
    there = match(STACKED, [Group((), read_tensors((tmp_path / "torch.safetensors",)))])
    assert there.fits
    stacked = to_jax(there)
    assert {path: array.shape for path, array in stacked.items()} == {"h.layers.fc.kernel": (2, 4, 3)}
    save(tmp_path / "jax.safetensors", stacked)
    back = match_port(STACKED, read_tensors((tmp_path / "jax.safetensors",)))
    assert back.fits
    assert all(np.array_equal(array, arrays[name]) for name, array in to_torch(back).items())


def test_a_stack_of_fewer_layers_is_another_shape(tmp_path: Path) -> None:
    save(tmp_path / "jax.safetensors", {"h.layers.fc.kernel": np.zeros((1, 4, 3))})
    assert [row.kind for row in match_port(STACKED, read_tensors((tmp_path / "jax.safetensors",))).rows] == ["matches", "shape"]
