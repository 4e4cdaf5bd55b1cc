"""Evidence for copies of a unit in other folders of the repository."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from migrate_agent.agent.loop.cached_verdicts import COPIED, Place, copy_key_of, of_copy
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Evidence, Example, Inventory, Reach, Verdict
from migrate_agent.tools.verify import Options

NET = """
import torch
from sizes import WIDTH

class Block(torch.nn.Module):
    def forward(self, x):
        return x

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.line, self.block = torch.nn.Linear(WIDTH, 2), Block()

    def forward(self, x):
        return self.block(self.line(x))
"""
PORT = (
    "from flax import nnx\nfrom helpers_jax import same\n\n\nclass Net(nnx.Module):\n    def __call__(self, x):\n        return same(x)\n"
)
HELPER = "def same(x):\n    return x\n"


def key(tree: Path, folder: str, call: str = "torch.randn(2, 3)") -> tuple[str, Inventory]:
    inventory = scan(tree / "original")
    unit = inventory.unit(f"{folder}/net.py:Net")
    example = Example(unit.id, "", call)
    options = replace(Options(), reached_before={f"{folder}/net_jax.py:Block.__call__": ("1a",)})
    return copy_key_of(unit, [example], [example], (tree / "original", tree / "candidate"), inventory, options, "cpu"), inventory


@pytest.mark.parametrize(
    ("path", "text", "same"),
    [
        ("original/b/net.py", "# A copy.\n" + NET, True),
        ("original/b/net.py", NET.replace("return x", "return 2 * x"), False),
        ("original/b/net.py", NET.replace("WIDTH, 2", "WIDTH, 4"), False),
        ("original/{}/net.py", NET + "\n    HERE = __file__\n", False),
        ("original/b/sizes.py", "WIDTH = 4\n", False),
        ("candidate/b/net_jax.py", PORT.replace("same(x)", "x"), False),
        ("candidate/b/helpers_jax.py", HELPER.replace("return x", "return x + 0"), False),
    ],
)
def test_copies_have_one_key(path: str, text: str, same: bool, tmp_path: Path) -> None:
    files = {
        "original/{}/net.py": NET,
        "original/{}/sizes.py": "WIDTH = 3\n",
        "candidate/{}/net_jax.py": PORT,
        "candidate/{}/helpers_jax.py": HELPER,
    }
    for folder in ("a", "b"):
        for name, content in files.items():
            file = tmp_path / name.format(folder)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
    for folder in ("a", "b"):
        (tmp_path / path.format(folder)).write_text(text)
    assert (key(tmp_path, "a")[0] == key(tmp_path, "b")[0]) is same
    assert key(tmp_path, "b")[0] != key(tmp_path, "b", "torch.randn(4, 3)")[0]


VERIFIED = Evidence(
    "a/net.py:Net",
    (Verdict("numeric", "forward_fp64", "pass", 1e-15, 1e-11, detail="at a/net.py:4"),),
    reach=Reach(2, 2, 0, (), {"a/net_jax.py:Net.__call__": ("1a",), "a/helpers_jax.py:same": ("2b",)}),
)
HERE, THERE = (Place(f"{folder}/net.py:Net", f"{folder}/net.py", f"{folder}/net_jax.py", folder, folder) for folder in ("a", "b"))


def test_evidence_is_told_of_the_copy_that_it_is_taken_for(tmp_path: Path) -> None:
    assert of_copy(tmp_path, HERE, "k", lambda: VERIFIED) == VERIFIED
    taken = of_copy(tmp_path, THERE, "k", lambda: pytest.fail("verified again"))
    assert taken.unit == "b/net.py:Net" and taken.verdicts[0].detail == "at b/net.py:4"
    assert taken.reach is not None and set(taken.reach.ran) == {"b/net_jax.py:Net.__call__", "b/helpers_jax.py:same"}
    assert taken.notes == (COPIED.format("a/net.py:Net"),)


def test_what_is_not_verified_is_judged_again(tmp_path: Path) -> None:
    failed = replace(VERIFIED, verdicts=(Verdict("numeric", "forward_fp64", "fail"),))
    assert of_copy(tmp_path, HERE, "k", lambda: failed) == failed
    assert of_copy(tmp_path, THERE, "k", lambda: VERIFIED) == VERIFIED
    (tmp_path / "k.json").write_text("{")
    assert of_copy(tmp_path, THERE, "k", lambda: failed) == failed
