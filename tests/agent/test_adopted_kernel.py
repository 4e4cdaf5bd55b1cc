"""A kernel written into a verified rewrite by the real command line, and the rewrite verified again with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from migrate_agent.tests.agent.repositories import git, repository
from migrate_agent.tests.agent.test_end_to_end import migrate
from migrate_agent.tests.tools.portable.units import needs_compiler

MODEL = """\
import torch.nn.functional as F
from torch import nn


class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Linear(8, 8)

    def forward(self, x):
        x = self.scale(x)[:, None]
        return F.scaled_dot_product_attention(x, x, x, is_causal=True)[:, 0]
"""
EXAMPLE = '[[example]]\nmodule = "model.py:Attend"\ninit = ""\ncall = "torch.randn(1, 5, 8)"\n'


@pytest.mark.slow
def test_the_rewrite_with_a_kernel_is_verified_again(tmp_path: Path) -> None:
    needs_compiler()
    root = repository(tmp_path / "repo", {"model.py": MODEL, "migrate.toml": EXAMPLE})
    where = ("--sandbox", "process", "--repo", str(root))
    ran = migrate("run", "--yes", "--no-llm", "--branch", "port", *where)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    git(root, "merge", "-q", "port")
    large = ("--topology", "v5e:1x1", "--program", "train", "--batch", "64", "--length", "2048")
    written = migrate("tpu", "model.py:Attend", *large, "--kernels", "--write", *where)
    assert written.returncode == 0, written.stdout + written.stderr
    assert "kernels written to model_jax.py" in written.stdout
    assert 'implementation="auto"' in (root / "model_jax.py").read_text()
    verified = migrate("verify", "model.py:Attend", "--report", str(tmp_path / "report.json"), *where)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    (unit,) = json.loads((tmp_path / "report.json").read_text())["units"]
    assert [row["status"] for row in unit["verdicts"] if row["check"] == "kernels"] == ["pass"]
