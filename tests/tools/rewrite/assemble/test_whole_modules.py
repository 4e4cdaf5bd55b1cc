"""Modules of the repository whose names are looked up by strings: the mirror has all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tools.rewrite import compose
from migrate_agent.tools.scan import scan

PACKAGE = "from .blocks import Twice, twice\nfrom . import blocks\n"
BLOCKS = """\
import torch
from torch import nn


def _half(x):
    return x / 2


def twice(x):
    return torch.relu(x) * 2


class Twice(nn.Module):
    def forward(self, x):
        return twice(x)


def stop(x):
    return torch.distributed.send(x, 1)
"""
NET = "from torch import nn\n{line}\n\n\nclass Net(nn.Module):\n    def __init__(self, name):\n        super().__init__()\n        self.body = {look}()\n"


@pytest.mark.parametrize(
    ("line", "look", "ours"),
    [
        ("import pkg", "getattr(pkg, name)", "getattr(pkg_jax, name)"),
        ("import pkg", "vars(pkg)[name]", "pkg_jax.__dict__[name]"),
        ("import pkg", "dict(blocks=pkg)[name].Twice", "dict(blocks=pkg_jax)[name].Twice"),
        ("import pkg.blocks as blocks", "blocks.__dict__[name]", "blocks.__dict__[name]"),
        ("from pkg import blocks", "getattr(blocks, name)", "getattr(blocks, name)"),
        ("import pkg", "getattr(pkg.blocks, name)", "getattr(pkg_jax.blocks, name)"),
    ],
)
def test_all_public_names_of_a_module_are_in_its_mirror(tmp_path: Path, line: str, look: str, ours: str) -> None:
    (tmp_path / "pkg").mkdir()
    for path, text in {"pkg/__init__.py": PACKAGE, "pkg/blocks.py": BLOCKS, "net.py": NET.format(line=line, look=look)}.items():
        (tmp_path / path).write_text(text)
    draft = compose(scan(tmp_path), {}, ["net.py:Net"])
    assert ours in draft.files["net_jax.py"]
    assert f"{line.replace('pkg', 'pkg_jax')}\n" in draft.files["net_jax.py"]
    blocks = draft.files["pkg_jax/blocks.py"]
    assert ("class Twice" in blocks, "def twice" in blocks, "def _half" in blocks, "def stop" in blocks) == (True, True, False, False)
    assert not draft.holes
    assert "pkg/blocks.py: stop is not migrated" in " ".join(draft.notes)
