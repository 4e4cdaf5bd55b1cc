"""Installed packages that need torch: which are adopted, what of them is mirrored, and the hole where one cannot be followed."""

from __future__ import annotations

import importlib.machinery
from pathlib import Path

import pytest

from migrate_agent.tools.rewrite import compose
from migrate_agent.tools.scan import adopt, scan
from migrate_agent.tools.types import Inventory
from tests.tools.scan.conftest import Write

MODEL = """
    import torch
    from torch import nn
    from torch.nn import Sequential as Chain
    from layerlib import Sequential, halve
    from layerlib.deep import Scale
    from bothlib import shared
    from plainlib import answer

    class Net(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.parts = Sequential(nn.Linear(dim, dim), None, Scale(dim))
            self.chain = Chain(nn.ReLU())
            self.answer = answer + shared

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return halve(self.chain(self.parts(x)))
"""
SITE = {
    "layerlib/__init__.py": """
        import torch
        from torch import nn
        from ._util import present

        def Sequential(*parts):
            return nn.Sequential(*filter(present, parts))

        def halve(x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x) / 2

        def unused(x: torch.Tensor) -> torch.Tensor:
            return x
        """,
    "layerlib/_util.py": "def present(value):\n    return value is not None\n",
    "layerlib/deep.py": """
        import torch
        from torch import nn

        class Scale(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(dim))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return x * self.weight
        """,
    "layerlib/never_reached.py": "import torch\n",
    "bothlib.py": "import sys\nif 'jax' in sys.modules:\n    import jax\nelse:\n    import torch\nshared = 1\n",
    "plainlib.py": "answer = 42\n",
    "weightlib.py": "import torch\n\ndef load(path):\n    import jax.numpy as jnp\n    return jnp.load(path)\n\ndef double(x):\n    return x + x\n",
    "backendlib.py": "def double(x):\n    if 'Tensor' in str(type(x)):\n        import torch\n    else:\n        import jax\n    return x + x\n",
}


@pytest.fixture
def inventory(write: Write, monkeypatch: pytest.MonkeyPatch) -> Inventory:
    root = write({"repo/model.py": MODEL, **{f"site/{name}": text for name, text in SITE.items()}})
    monkeypatch.syspath_prepend(root / "site")
    return scan(root / "repo")


def test_adopts_what_is_reached_of_packages_that_need_torch(inventory: Inventory) -> None:
    adopted = {file.module: file for file in inventory.files if file.adopted}
    assert set(adopted) == {"layerlib", "layerlib._util", "layerlib.deep"}
    assert adopted["layerlib.deep"].target == "layerlib_jax/deep.py"
    assert Path(adopted["layerlib.deep"].path).is_file()
    assert inventory.bound == ()


@pytest.mark.parametrize(("package", "is_adopted"), [("weightlib", True), ("backendlib", False), ("bothlib", False)])
def test_a_package_that_serves_jax_as_well_is_left_alone(
    write: Write, monkeypatch: pytest.MonkeyPatch, package: str, is_adopted: bool
) -> None:
    text = f"import torch\nfrom torch import nn\nfrom {package} import double\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return double(x)\n"
    root = write({"repo/model.py": text, **{f"site/{name}": content for name, content in SITE.items()}})
    monkeypatch.syspath_prepend(root / "site")
    assert any(file.module == package for file in scan(root / "repo").files if file.adopted) == is_adopted


def test_classes_of_adopted_packages_are_no_units(inventory: Inventory) -> None:
    assert [unit.id for unit in inventory.units] == ["model.py:Net"]
    assert all(not Path(finding.source).is_absolute() for finding in inventory.findings)


def test_mirrors_what_a_unit_needs_of_them(inventory: Inventory) -> None:
    draft = compose(inventory, {}, ["model.py:Net"])
    assert not draft.holes
    assert {"model_jax.py", "layerlib_jax/__init__.py", "layerlib_jax/_util.py", "layerlib_jax/deep.py"} <= set(draft.files)
    model = draft.files["model_jax.py"]
    assert "from layerlib_jax import Sequential, halve" in model
    assert "from bothlib import shared" in model and "from plainlib import answer" in model
    assert "nnx_layers_jax.Sequential(" in model or "nnx_layers.Sequential(" in model  # torch's own keeps out of the way of theirs
    assert "unused" not in draft.files["layerlib_jax/__init__.py"]
    assert any("layerlib_jax/deep.py is rewritten from" in note for note in draft.notes)


@pytest.mark.parametrize("statement", ["from layerlib import halve", "import layerlib.deep"])
def test_refuses_what_it_cannot_follow(write: Write, monkeypatch: pytest.MonkeyPatch, statement: str) -> None:
    use = "halve(x)" if statement.startswith("from") else "layerlib.deep.Scale(3)(x)"
    text = f"from torch import nn\n{statement}\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return {use}\n"
    root = write({"repo/model.py": text, **{f"site/{name}": content for name, content in SITE.items()}})
    monkeypatch.syspath_prepend(root / "site")
    monkeypatch.setattr(adopt, "MOST_FILES", 0)
    found = scan(root / "repo")
    assert found.bound == ("layerlib",)
    assert [hole.code for hole in compose(found, {}, ["model.py:Net"]).holes] == ["torch-package"]


BACKBONE = (
    "from torch import nn\nfrom torchvision import models\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.body = models.small(4)\n\n    def forward(self, x):\n        return self.body(x)\n"
)


def test_backbones_of_torchvision_are_mirrored_where_it_is_installed(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    site = {
        "site/torchvision/__init__.py": "import torch\nfrom torchvision import models\n",
        "site/torchvision/models.py": "from torch import nn\n\n\ndef small(dim):\n    return nn.Linear(dim, dim)\n",
    }
    root = write({"repo/model.py": BACKBONE, **site})
    monkeypatch.syspath_prepend(root / "site")
    draft = compose(scan(root / "repo"), {}, ["model.py:Net"])
    assert not draft.holes
    assert "torchvision_jax/models.py" in draft.files


def test_torchvision_is_a_hole_where_it_is_not_installed(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.machinery.PathFinder.find_spec
    # Of all packages this one alone: others may be imported here for the first time.
    monkeypatch.setattr(
        importlib.machinery.PathFinder, "find_spec", lambda name, *rest: None if name.startswith("torchvision") else find(name, *rest)
    )
    found = scan(write({"repo/model.py": BACKBONE}) / "repo")
    assert found.bound == ("torchvision",)
    assert {hole.code for hole in compose(found, {}, ["model.py:Net"]).holes} == {"torch-package"}
