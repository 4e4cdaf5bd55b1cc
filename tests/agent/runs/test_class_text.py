"""What is read out of source text for somebody who is to add an example."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.agent.runs.class_text import is_called

CALLED = [
    ("class A(nn.Module):\n    def forward(self, x):\n        return x\n", True),
    ("class A(nn.Module):\n    def unfold(self, x):\n        return x\n", False),
    ("class A(torch.nn.Module, abc.ABC):\n    pass\n", False),
    ("class A(Base):\n    pass\n", True),
    ("class A(nn.ReLU):\n    pass\n", True),
    ("x = 1\n", True),
]


@pytest.mark.parametrize(("source", "expected"), CALLED)
def test_whether_a_class_may_be_called(tmp_path: Path, source: str, expected: bool) -> None:
    (tmp_path / "a.py").write_text(source)
    assert is_called(tmp_path / "a.py", "A") == expected
