"""Example texts in the mirror's names bring what they use."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tools.rewrite import translate
from migrate_agent.tools.types import Example, Inventory, SourceFile, Unit

SOURCE = "from torch import nn\n\n{more}class Net(nn.Module):\n    def __init__(self, act):\n        super().__init__()\n        self.act = act\n"


@pytest.mark.parametrize(
    ("path", "more", "init", "line"),
    [
        ("model.py", "", "nn.GELU()", "from nnx_layers_jax import GELU"),
        ("pkg/model.py", "", "nn.GELU()", "from pkg_jax.nnx_layers import GELU"),
        ("model.py", "class GELU:\n    pass\n\n\n", "nn.GELU()", "import nnx_layers_jax as nnx_layers"),
        ("pkg/model.py", "class GELU:\n    pass\n\n\n", "nn.GELU()", "from pkg_jax import nnx_layers"),
    ],
)
def test_imports_of_helpers(tmp_path: Path, path: str, more: str, init: str, line: str) -> None:
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_text(SOURCE.format(more=more))
    target = "pkg_jax/model.py" if "/" in path else "model_jax.py"
    file = SourceFile(path, path[:-3].replace("/", "."), target, target[:-3].replace("/", "."), True)
    inventory = Inventory(tmp_path, (file,), (Unit(path, "Net", target, "rewrite"),))
    assert line in translate(inventory, {}, Example(f"{path}:Net", init, "")).setup
