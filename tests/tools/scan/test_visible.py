"""Files of the same name in several projects of one repository: each file sees its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tools.rewrite import compose, mentions
from migrate_agent.tools.scan import scan
from migrate_agent.tools.scan.visible import visible_from
from migrate_agent.tools.types import Inventory

NET = """from torch import nn
from utils import {helper}
from common.layers import {layer}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = {layer}()

    def forward(self, x):
        return {helper}(self.inner(x))
"""
LAYERS = """from torch import nn


class Left(nn.Module):
    def forward(self, x):
        return x + 1


class Right(nn.Module):
    def forward(self, x):
        return x - 1
"""
FILES = {
    "a/net.py": NET.format(helper="double", layer="Left"),
    "a/utils.py": "def double(x):\n    return x * 2\n",
    "a/only.py": "",
    "b/net.py": NET.format(helper="halve", layer="Right"),
    "b/utils/__init__.py": "from .more import halve\n",
    "b/utils/more.py": "def halve(x):\n    return x / 2\n",
    "common/layers.py": LAYERS,
    "main.py": "from common.layers import Left\n",
}


@pytest.fixture
def inventory(tmp_path: Path) -> Inventory:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return scan(tmp_path)


def paths(inventory: Inventory) -> set[str]:
    return {file.path for file in inventory.files}


def test_each_project_sees_its_own(inventory: Inventory) -> None:
    first, second = visible_from(inventory, "a/net.py"), visible_from(inventory, "b/net.py")
    assert paths(first) == {"a/net.py", "a/utils.py", "a/only.py", "common/layers.py", "main.py"}
    # A module hides the package of its name whole, and a package the module.
    assert paths(second) == {"b/net.py", "b/utils/__init__.py", "b/utils/more.py", "a/only.py", "common/layers.py", "main.py"}
    assert [unit.id for unit in second.units if unit.name == "Net"] == ["b/net.py:Net"]


def test_own_import_root_comes_first(tmp_path: Path) -> None:
    # Folders without `__init__.py` of both projects are one package for Python, which takes a file from the first root.
    texts = {
        "layers/block.py": "",
        "layers/more.py": "",
        "net.py": "from layers.block import x\n",
        "old/layers/block.py": "",
        "old/layers/far.py": "",
    }
    for path, text in {**texts, "old/net.py": "from layers.block import x\nfrom layers.far import y\n"}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    whole = scan(tmp_path)
    for path, roots in (("net.py", ["", "old"]), ("old/net.py", ["old", ""])):
        assert list(dict.fromkeys(file.import_root for file in visible_from(whole, path).files)) == roots


def test_views_are_the_same_objects(inventory: Inventory) -> None:
    assert visible_from(inventory, "a/only.py") is visible_from(inventory, "a/net.py")
    with pytest.raises(KeyError):
        visible_from(inventory, "nowhere.py")


def test_without_clashes_the_view_is_the_inventory(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("")
    whole = scan(tmp_path)
    assert visible_from(whole, "a.py") is whole


def test_mirrors_stay_apart_and_shared_files_hold_both(inventory: Inventory) -> None:
    draft = compose(inventory, {}, ["a/net.py:Net", "common/layers.py:Left", "b/net.py:Net"])
    assert "double(self.inner(x))" in draft.files["a/net_jax.py"] and "halve(self.inner(x))" in draft.files["b/net_jax.py"]
    assert "def double" in draft.files["a/utils_jax.py"] and "def halve" in draft.files["b/utils_jax/more.py"]
    assert all(f"class {name}(nnx.Module)" in draft.files["common_jax/layers.py"] for name in ("Left", "Right"))
    assert mentions(inventory, {}, "b/net.py:Net") == ("common/layers.py:Right",)


def test_helpers_of_import_roots_that_are_used_together(tmp_path: Path) -> None:
    """Folders that are put on PYTHONPATH: files of helpers have one name, so that each has what the others need."""
    texts = {
        "nets/__init__.py": "",
        "nets/part.py": "SIZE = 3\n",
        "nets/net.py": "from torch import nn\nfrom part import SIZE\nfrom tools import pad\n\n\nclass Net(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.norm = nn.BatchNorm1d(SIZE)\n\n    def forward(self, x):\n        return self.norm(pad(x))\n",
        "tools/__init__.py": "",
        "tools/tools.py": "import torch\n\n\ndef pad(x: torch.Tensor):\n    return torch.nn.functional.gelu(x).unfold(0, 2, 1)\n",
    }
    for path, text in texts.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    draft = compose(scan(tmp_path), {}, ["nets/net.py:Net"])
    assert "from tools_jax import pad" in draft.files["nets/net_jax.py"]
    helpers = [draft.files[f"{folder}/nnx_layers_jax.py"] for folder in ("nets", "tools")]
    assert helpers[0] == helpers[1]
