"""What an installed package does with layers counts where the repository's own code leads to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tools.rewrite.analysis.repo import Repo
from migrate_agent.tools.rewrite.assemble.workspace import Workspace
from migrate_agent.tools.types import Inventory, SourceFile

MODEL = (
    "import layerlib\nfrom torch import nn\n\nclass Net(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
    "        self.fc = nn.Linear(d, 3)\n        self.kept = layerlib.{}(self)\n"
)
LAYERLIB = (
    "from torch import nn\n\ndef half(x):\n    return x / 2\n\ndef shared(net):\n    return kept_of(net)\n\n"
    "def kept_of(net):\n    return [part.weight for part in net.modules() if isinstance(part, nn.Linear)]\n"
)


@pytest.mark.parametrize(("called", "is_plain"), [("half", True), ("shared", False), ("kept_of", False)])
def test_only_what_is_reached_of_an_installed_package_counts(tmp_path: Path, called: str, is_plain: bool) -> None:
    site = tmp_path / "layerlib.py"
    site.write_text(LAYERLIB)
    (tmp_path / "net.py").write_text(MODEL.format(called))
    own = SourceFile("net.py", "net", "net_jax.py", "net_jax", True)
    installed = SourceFile(str(site), "layerlib", "layerlib_jax.py", "layerlib_jax", True, adopted="layerlib 1.0")
    kinds = Repo(Inventory(tmp_path, (own, installed), (), style="plain")).plain.kinds
    assert ("torch.nn.Linear" in kinds) == is_plain


def test_what_nothing_leads_to_may_ask_for_a_layer_that_flax_has_as_a_function(tmp_path: Path) -> None:
    site = tmp_path / "layerlib.py"
    site.write_text("from torch import nn\n\ndef half(x):\n    return x / 2\n\ndef is_idle(x):\n    return isinstance(x, nn.Identity)\n")
    (tmp_path / "net.py").write_text(MODEL.format("half").replace("nn.Linear(d, 3)", "nn.Identity()"))
    own = SourceFile("net.py", "net", "net_jax.py", "net_jax", True)
    installed = SourceFile(str(site), "layerlib", "layerlib_jax.py", "layerlib_jax", True, adopted="layerlib 1.0")
    space = Workspace(Inventory(tmp_path, (own, installed), (), style="plain"), {})
    assert "torch.nn.Identity" in space.repo.plain.kinds
    assert space.rewritten(str(site)).holes == ()
    assert "isinstance(x, Identity)" in "".join(statement.text for statement in space.statements(str(site)))
