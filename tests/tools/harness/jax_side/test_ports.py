"""Ports in other libraries, by hand, are verified as they are, and wrong ones refused; weight maps match what is unambiguous."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from migrate_agent.sandbox.process import ProcessSandbox
from migrate_agent.tests.tools.verify.harness import told
from migrate_agent.tools.harness.jax_side.port_file import PortFileError, load
from migrate_agent.tools.harness.jax_side.weight_map import Leaf, MapError, match, tokens
from migrate_agent.tools.types import Evidence, Example, Inventory, SourceFile, Unit
from migrate_agent.tools.verify import Options, verify

PORTS = Path(__file__).parents[3] / "examples/fixtures/ports"

WRONG = {
    "linen: epsilon": ("linen_net.py:Net", "linen.toml", "epsilon=1e-5", "epsilon=1e-6", "forward_fp64"),
    "function: another rate": ("function_net.py:forward", "function.json", "rate=0.1", "rate=0.2", "training_fp64"),
    "function: rate of the mask": ("function_net.py:forward", "function.json", "rng, 1 - rate", "rng, 1 - rate / 2", "dropout"),
    "equinox: halves swapped": ("equinox_net.py:Network", "equinox.toml", "value, gate =", "gate, value =", "forward_fp64"),
}


def check_port(sandbox: ProcessSandbox, folder: Path, target: str, port: str, old: str = "", new: str = "") -> Evidence:
    """Verify a port of the fixtures, with a text in it replaced."""
    path, _, name = target.partition(":")
    text = (PORTS / path).read_text()
    assert old in text
    candidate = folder / "candidate"
    candidate.mkdir(parents=True, exist_ok=True)
    (candidate / path).write_text(f"{text.replace(old, new) if old else text}\nNet = {name}\n")
    unit = Unit("model.py", "Net", path, "rewrite")
    inventory = Inventory(PORTS, (SourceFile("model.py", "model", path, path.removesuffix(".py"), True),), (unit,))
    example = Example(unit.id, "", "torch.randn(5, 6)")
    return verify(unit, [example], [example], PORTS, candidate, inventory, sandbox, folder / "work", Options(port=load(PORTS / port)))


@pytest.mark.slow
def test_right_function_is_verified(sandbox: ProcessSandbox, tmp_path: Path) -> None:
    """Right ports in Linen and Equinox: `tests/examples/test_ports.py`, through the command line."""
    evidence = check_port(sandbox, tmp_path, "function_net.py:forward", "function.json")
    assert evidence.status == "verified", told(evidence)
    assert len(evidence.verdicts) > 20


@pytest.mark.slow
@pytest.mark.parametrize("case", WRONG)
def test_wrong_port_is_refused(case: str, sandbox: ProcessSandbox, tmp_path: Path) -> None:
    target, port, old, new, check = WRONG[case]
    evidence = check_port(sandbox, tmp_path, target, port, old, new)
    assert check in [verdict.check for verdict in evidence.verdicts if verdict.status == "fail"], told(evidence)


LEAVES = [
    Leaf(("params", "Dense_0", "kernel"), (4, 3), True),
    Leaf(("params", "Dense_0", "bias"), (3,), True),
    Leaf(("params", "norm", "scale"), (3,), True),
    Leaf(("batch_stats", "norm", "mean"), (3,), False),
    Leaf(("params", "conv", "bias"), (7, 1), True),
]
WANTED = {"Dense.0.weight": (3, 4), "Dense.0.bias": (3,), "norm.weight": (3,), "norm.running_mean": (3,), "first.bias": (7,)}
TRAINED = {name: "running" not in name for name in WANTED}


def test_names_and_shapes_are_matched_both_ways() -> None:
    found, omitted = match({**WANTED, "norm.num_batches_tracked": ()}, {**TRAINED, "norm.num_batches_tracked": False}, LEAVES, {})
    assert {name: place.leaf for name, place in found.items()} == dict(zip(WANTED, range(5), strict=True))
    assert omitted == ["norm.num_batches_tracked"]
    for name, place in found.items():
        array = np.random.default_rng(0).standard_normal(WANTED[name])
        assert place.to_port(array).shape == LEAVES[place.leaf].shape
        np.testing.assert_array_equal(place.to_torch(place.to_port(array), WANTED[name]), array)


def test_entries_may_be_parts_of_a_leaf_and_tied_names_one_leaf() -> None:
    leaves = [Leaf(("layers", "up"), (2, 3, 4)), Leaf(("qkv",), (4, 6)), Leaf(("table",), (5, 4))]
    wanted = {"l.0": (4, 3), "l.1": (4, 3), "q": (2, 4), "kv": (4, 4), "embed": (5, 4), "head": (5, 4)}
    rows = {f"l.{number}": {"path": "layers/up", "index": number, "transpose": [1, 0]} for number in range(2)}
    rows |= {"q": {"path": "qkv", "part": [1, 0, 2], "transpose": [1, 0]}, "kv": {"path": "qkv", "part": [1, 2, 6], "transpose": [1, 0]}}
    found, _ = match(wanted, dict.fromkeys(wanted, True), leaves, {**rows, "embed": "table"}, {"head": "embed"})
    assert found["head"] == found["embed"]
    leaf = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(found["l.1"].get(leaf, (4, 3)), leaf[1].T)
    np.testing.assert_array_equal(found["l.1"].to_port(leaf[1].T), leaf[1])
    fused = np.arange(24.0).reshape(4, 6)
    np.testing.assert_array_equal(found["kv"].get(fused, (4, 4)), fused[:, 2:].T)


@pytest.mark.parametrize("row", [{"index": 2}, {"part": [1, 2, 9]}, {"part": [3, 0, 1]}])
def test_parts_that_are_not_there_say_so(row: dict[str, Any]) -> None:
    with pytest.raises(MapError, match="has no"):
        match({"a": (3, 4)}, {"a": True}, [Leaf(("x",), (2, 3, 4))], {"a": {"path": "x", **row}})


def test_reshape_comes_before_transpose() -> None:
    leaves = [Leaf(("w",), (4, 2, 3))]
    row = {"path": "w", "reshape": [2, 3, 4], "transpose": [2, 0, 1]}
    found, _ = match({"q": (6, 4)}, {"q": True}, leaves, {"q": row})
    array = np.arange(24.0).reshape(6, 4)
    np.testing.assert_array_equal(found["q"].to_port(array), array.reshape(2, 3, 4).transpose(2, 0, 1))
    np.testing.assert_array_equal(found["q"].to_torch(found["q"].to_port(array), (6, 4)), array)


@pytest.mark.parametrize(
    ("wanted", "given", "words"),
    [
        ({"a": (2,), "b": (2,)}, {}, "a, b"),
        ({"a": (2,), "b": (2,)}, {"a": "x", "b": "z"}, "the port has no z"),
        ({"a": (2,), "b": (2,)}, {"c": "x"}, "does not have: c"),
        ({"a": (2,), "b": (2,)}, {"a": False}, "cannot be left out"),
        ({"a": (2,)}, {"a": "x"}, "without counterpart in the original: y"),
        ({"a": (2,), "b": (2,)}, {"a": {"path": "x", "transpose": [1]}}, "no order of axes"),
    ],
)
def test_maps_that_do_not_fit_say_so(wanted: dict[str, tuple[int, ...]], given: dict[str, Any], words: str) -> None:
    with pytest.raises(MapError, match=words):
        match(wanted, dict.fromkeys(wanted, True), [Leaf(("x",), (2,)), Leaf(("y",), (2,))], given)


def test_paths_have_many_spellings() -> None:
    assert tokens("layers[0].weight") == tokens("layers/0/weight") == tokens("['layers'][0]['weight']") == ("layers", "0", "weight")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("vmap = 1", "`vmap` must be a bool"),
        ("weight = {}", "unknown key `weight`"),
        ('kind = "haiku"', "one of nnx"),
        ("[weights]\na = 3", "a must be a path"),
        ("x =", "port.toml"),
    ],
)
def test_files_that_are_wrong_say_so(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "port.toml").write_text(text)
    with pytest.raises(PortFileError, match=words):
        load(tmp_path / "port.toml")
