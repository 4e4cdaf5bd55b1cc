"""Functions that a module keeps and that hold it: those that cannot be handed the module are left open, with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.rewrite.snippets import rewrite_snippet

TEMPLATE = """import torch
import torch.nn.functional as F
from torch import nn

class M(nn.Module):
    def __init__(self, d: int, deep: bool):
        super().__init__()
        self.lin = nn.Linear(d, d)
        {kept}

    def f(self, x: torch.Tensor):
        return self.lin(x)

    @staticmethod
    def plain(x: torch.Tensor):
        return x

    def forward(self, x: torch.Tensor):
        return {used}
"""
REFUSED = (
    ("self.fn = self.f if deep else F.relu", "self.fn(x)", "with others that do not"),
    ("self.fn = lambda x, me=self: me.lin(x)", "self.fn(x)", "as a default"),
    ("self.fn = [self.f, self.f]", "[g(x) for g in self.fn]", "read where"),
    ("self.fn = self.f", "getattr(self, 'fn')(x)", "names in a string"),
    ("self.forward = self.f", "x", "method of its name"),
    ("lin = nn.Linear(d, d); self.fn = lambda x: lin(x) + self.lin(x)", "self.fn(x)", "holds lin too"),
    ("lin = nn.Linear(d, d); self.fn = lambda x, lin=lin: lin(x) + self.lin(x)", "self.fn(x)", "holds lin too"),
)
KEPT = (
    ("self.fn = self.plain", "self.fn(x)", "self.fn(x)"),
    ("self.fn = F.relu", "self.fn(x)", "self.fn(x)"),
    ("self.fn = self.f(torch.ones(d))", "self.fn + x", "self.fn + x"),
    ("self.fn = self.f if deep else None", "x if self.fn is None else self.fn(x)", "x if self.fn is None else self.fn(self, x)"),
    ("self.fn = dict(f=self.f)", "self.fn.get('f')(x)", 'self.fn.get("f")(self, x)'),
)


@pytest.mark.parametrize(("kept", "used", "reason"), REFUSED)
def test_left_open(tmp_path: Path, kept: str, used: str, reason: str) -> None:
    _, holes = rewrite_snippet(tmp_path, TEMPLATE.format(kept=kept, used=used))
    assert [hole for hole in holes if hole.code == "captured-module" and reason in hole.reason]


@pytest.mark.parametrize(("kept", "used", "expected"), KEPT)
def test_handed_over(tmp_path: Path, kept: str, used: str, expected: str) -> None:
    text, holes = rewrite_snippet(tmp_path, TEMPLATE.format(kept=kept, used=used))
    assert f"return {expected}\n" in text
    assert not holes
