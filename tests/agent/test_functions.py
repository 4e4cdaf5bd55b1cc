"""The real program on a repository of functions: each is a unit, migrated before what calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.agent.repositories import git, repository
from tests.agent.test_end_to_end import migrate

LOSSES = '''"""Losses."""
import torch
import torch.nn.functional as F


def focal(logits, target, gamma=2.0, reduction="mean"):
    """
    >>> focal(torch.randn(4, 3), torch.tensor([0, 1, 2, 1]), gamma=1.5)
    """
    logs = F.log_softmax(logits, dim=-1)
    chosen = logs.gather(1, target.unsqueeze(1)).squeeze(1)
    loss = -((1 - chosen.exp()) ** gamma) * chosen - 0.1 * logs.mean(dim=-1)
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def penalty(net, x):
    x = x.detach().requires_grad_(True)
    (slope,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    return ((slope.norm(dim=1) - 1) ** 2).mean()


def step(model, loss):
    loss.backward()
    return model
'''
EXAMPLE = '[[example]]\nmodule = "losses.py:penalty"\ninit = "net=torch.nn.Linear(4, 1)"\ncall = "torch.randn(3, 4)"\n'


@pytest.mark.slow
def test_functions_are_migrated_and_verified(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"losses.py": LOSSES, "migrate.toml": EXAMPLE})
    report = tmp_path / "report.json"
    done = migrate("run", "--yes", "--no-llm", "--sandbox", "process", "--repo", str(root), "--report", str(report))
    assert done.returncode == 0, done.stderr + done.stdout
    document = json.loads(report.read_text())
    assert [(unit["name"], unit["kind"], unit["status"]) for unit in document["units"]] == [
        ("focal", "function", "verified"),
        ("penalty", "function", "verified"),
    ]
    text = git(root, "show", f"{document['branch']}:losses_jax.py")
    assert "def focal(logits, target, gamma=2.0, reduction=" in text and "jax.grad(lambda x: " in text
    assert "torch" not in text.replace(">>> focal(torch.randn(4, 3), torch.tensor([0, 1, 2, 1]), gamma=1.5)", "")
