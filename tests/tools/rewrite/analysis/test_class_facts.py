"""The facts of a class are those of all analyses, and a class that is no module has the empty ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from migrate_agent.tests.tools.rewrite.snippets import snippet_workspace
from migrate_agent.tools.rewrite.analysis.class_facts import ClassFacts, class_facts

SOURCE = """import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.deterministic = True
        self.seen = None
        self.steps = 0
        self.fn = self.f
        self.layers = []
        self.layers.append(nn.Linear(2, 2))
        self.layers = nn.Sequential(*self.layers)

    def f(self, x):
        return x

    def forward(self, x: torch.Tensor):
        self.steps += 1
        self.seen = x * 2
        return self.fn(x)


class Plain:
    def f(self):
        self.deterministic = self.training
"""


def facts_of(folder: Path, source: str) -> Mapping[str, ClassFacts]:
    space = snippet_workspace(folder, source)
    return class_facts(space.repo, space.repo.files["snippet.py"], space.facts("snippet.py"), space.randomness)


def test_all_analyses_are_asked(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, SOURCE)["snippet.py:M"]
    assert facts.counters == {"steps"}
    assert facts.intermediates == {"seen": True}
    assert facts.taken_names == {"deterministic"}
    assert len(facts.self_references.methods) == 1
    assert set(facts.interim_containers.values()) == {"layers"}
    assert not facts.reads_training


def test_a_plain_class_has_the_empty_facts(tmp_path: Path) -> None:
    assert facts_of(tmp_path, SOURCE)["snippet.py:Plain"] == ClassFacts()


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("def f(self):\n        return self.training", True),
        ("def f(this):\n        this.training = False", True),
        ("if True:\n        def f(self):\n            return self.training", True),
        ("def f(self, other):\n        return other.training", False),
        ("@staticmethod\n    def f(other):\n        return other.training", False),
        ("def f(self):\n        class C:\n            def g(self):\n                return self.training\n        return C", False),
    ],
)
def test_reading_the_mode(method: str, expected: bool, tmp_path: Path) -> None:
    facts = facts_of(tmp_path, f"from torch import nn\n\nclass M(nn.Module):\n    {method}\n")
    assert facts["snippet.py:M"].reads_training is expected
