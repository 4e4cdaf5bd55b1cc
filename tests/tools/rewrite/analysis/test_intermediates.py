"""What a call leaves on its module, where relatives of its class were run by no example."""

from __future__ import annotations

from pathlib import Path

from migrate_agent.tests.tools.rewrite.snippets import snippet_workspace
from migrate_agent.tools.rewrite.analysis.intermediates import intermediates

SOURCE = """
import torch
from torch import nn

class Base(nn.Module):
    pass

class Ran(Base):
    def __init__(self):
        super().__init__()
        self.real = None

    def forward(self, x: torch.Tensor):
        self.real = x * 2
        return x + 1

class Unrun(Base):
    def forward(self, x, fields):
        self.real = fields[x.name]
        return self.real.value
"""
RAN = frozenset(range(10, 16))


def test_what_did_not_run_decides_nothing(tmp_path: Path) -> None:
    space = snippet_workspace(tmp_path, SOURCE)
    facts = {path: space.facts(path) for path in space.repo.files}
    found = intermediates(space.repo, facts, space.randomness, lambda path: RAN)
    assert found["snippet.py:Ran"] == {"real": True}


def test_what_may_have_run_decides(tmp_path: Path) -> None:
    """Without a recording, and where the relative ran with values that are no arrays."""
    space = snippet_workspace(tmp_path, SOURCE)
    facts = {path: space.facts(path) for path in space.repo.files}
    for lines in (frozenset[int](), RAN | {19, 20}):
        assert not intermediates(space.repo, facts, space.randomness, lambda path, lines=lines: lines)["snippet.py:Ran"]  # type: ignore[misc]
