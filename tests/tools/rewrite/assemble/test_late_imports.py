"""Files that import each other: an import that stands below what the other file reads stays there."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tools.rewrite import compose
from migrate_agent.tools.scan import scan

PACKAGE = "import torch\nimport math\n\n\ndef twice(x):\n    return torch.relu(x) * 2\n\n\n{late}\nimport math as m\n"
MODEL = "from torch import nn\n\nfrom . import twice\n\n\nclass Twice(nn.Module):\n    def forward(self, x):\n        return twice(x)\n"


@pytest.mark.parametrize("late", ["from .model import Twice", "from pkg.model import Twice", "from .model import *"])
def test_a_late_import_of_the_repository_stays_late(tmp_path: Path, late: str) -> None:
    (tmp_path / "pkg").mkdir()
    for path, text in {"pkg/__init__.py": PACKAGE.format(late=late), "pkg/model.py": MODEL, "use.py": "from pkg import Twice\n"}.items():
        (tmp_path / path).write_text(text)
    draft = compose(scan(tmp_path), {}, ["pkg/model.py:Twice"])
    text = draft.files["pkg_jax/__init__.py"]
    assert not draft.holes
    assert late.endswith("*") or text.index("def twice") < text.index("import Twice")


def test_other_imports_stand_at_the_top(tmp_path: Path) -> None:
    source = "import torch\nfrom torch import nn\n\nK = 2\n\nimport math\n\n\nclass A(nn.Module):\n    def forward(self, x):\n        return x * math.pi * K\n"
    (tmp_path / "model.py").write_text(source)
    text = compose(scan(tmp_path), {}, ["model.py:A"]).files["model_jax.py"]
    assert text.index("import math") < text.index("K = 2")
