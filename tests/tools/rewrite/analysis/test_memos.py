"""Which attributes are memos, and which are state that must not be forgotten."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from migrate_agent.tools.rewrite.analysis.memos import memos
from tests.tools.rewrite.snippets import snippet_workspace

KEPT = (Path(__file__).parents[1] / "fixtures" / "idioms" / "kept.py").read_text()
TEMPLATE = """import torch
from torch import nn

class M(nn.Module):
    def __init__(self, n: int):
        super().__init__()
        self.kept = None
        self.n = 3
        self.w = nn.Parameter(torch.ones(3))

    def forward(self, x: torch.Tensor):
        if self.kept is None:
            self.kept = {value}
        return {result}
"""


@pytest.mark.parametrize(("name", "expected"), [("Masked", ["src_mask"]), ("Alibi", ["bias"]), ("FirstBatch", []), ("Noise", [])])
def test_of_the_fixtures(tmp_path: Path, name: str, expected: list[str]) -> None:
    assert name in {node.name for node in ast.parse(KEPT).body if isinstance(node, ast.ClassDef)}
    assert _memos(tmp_path, KEPT, name) == expected


@pytest.mark.parametrize(
    ("value", "result", "is_memo"),
    [
        ("torch.ones(x.shape[0])", "x * self.kept", True),
        ("torch.ones(len(x)) * self.n", "x * self.kept", True),
        ("torch.ones(x.shape[0]) * x.mean()", "x * self.kept", False),
        ("self.w * 2", "x * self.kept", False),
        ("torch.rand(x.shape[0])", "x * self.kept", False),
        ("torch.ones(x.shape[0])", "x * getattr(self, 'kept')", False),
    ],
)
def test_of_sizes_alone(tmp_path: Path, value: str, result: str, is_memo: bool) -> None:
    assert _memos(tmp_path, TEMPLATE.format(value=value, result=result), "M") == (["kept"] if is_memo else [])


def test_an_attribute_that_another_method_reads_is_none(tmp_path: Path) -> None:
    text = TEMPLATE.format(value="torch.ones(x.shape[0])", result="x * self.kept") + "\n    def look(self):\n        return self.kept\n"
    assert _memos(tmp_path, text, "M") == []


def test_the_instance_may_be_called_otherwise(tmp_path: Path) -> None:
    text = TEMPLATE.format(value="torch.ones(x.shape[0])", result="x * self.kept").replace("self", "this")
    assert _memos(tmp_path, text, "M") == ["kept"]


def _memos(folder: Path, text: str, name: str) -> list[str]:
    space = snippet_workspace(folder, text)
    path = next(iter(space.repo.files))
    return sorted(memos(space.repo, space.repo.files[path].classes[name], space.facts(path)))
