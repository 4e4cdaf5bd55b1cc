"""Imports of the repository's own kernels, which fail where these were not compiled: the source's fallback is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tools.rewrite import compose
from migrate_agent.tools.scan import scan

MODEL = """
import torch
from torch import nn

try:
    import os, sys

    sys.path.append(os.path.abspath(".."))
    from kernels.window import Fused
except ImportError:
    Fused = None


class Net(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if Fused is None else Fused.apply(x)
"""
NEEDED = "import torch\n\n{}\n\nclass Fused(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x * 2\n"
IMPORTS = [
    ("import window_kernels_that_nobody_compiled", True),
    ("from kernels.inner import launch", True),
    ("import math", False),
    ("try:\n    import window_kernels_that_nobody_compiled\nexcept ImportError:\n    pass", False),
]


@pytest.mark.parametrize(("line", "is_taken"), IMPORTS)
def test_the_fallback_is_taken_where_the_import_fails(tmp_path: Path, line: str, is_taken: bool) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "kernels" / "__init__.py").write_text("")
    (tmp_path / "kernels" / "window.py").write_text(NEEDED.format(line))
    (tmp_path / "kernels" / "inner.py").write_text("from kernels_that_nobody_compiled import launch\n")
    draft = compose(scan(tmp_path), {}, ["model.py:Net"])
    text = draft.files["model_jax.py"]
    assert ("try:" not in text and "Fused = None" in text) == is_taken
    assert any("sys.path" in hole.text for hole in draft.holes) != is_taken
