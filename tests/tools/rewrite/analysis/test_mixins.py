"""Decorators that give a class a base."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tools.rewrite.analysis.mixins import inline_mixin_bases
from tests.tools.rewrite.snippets import rewrite_snippet

DECORATOR = "def mixed(cls):\n    cls.__bases__ = (State,) + {}\n    return cls\n"
OTHERS = "tuple(b for b in cls.__bases__ if b != State)"
STATE = "from torch import nn\n\nclass State(object):\n    def __init__(self, *args, **kwargs):\n        super().__init__(*args, **kwargs)\n        self.n = 1\n\n"
USE = "@mixed\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(2, 2)\n"


def test_base_stands_in_the_header(tmp_path: Path) -> None:
    text, _ = rewrite_snippet(tmp_path, STATE + DECORATOR.format(OTHERS) + USE)
    assert "class M(State, nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        super().__init__()\n" in text
    assert "@mixed" not in text


@pytest.mark.parametrize(
    ("rest", "after"),
    [
        (OTHERS, "\nclass M(State, nn.Module):"),
        ("cls.__bases__", "\nclass M(State, nn.Module):"),
        ("tuple(b for b in cls.__bases__ if b != object)", "@mixed\nclass M(nn.Module):"),
        ("(Other,)", "@mixed\nclass M(nn.Module):"),
    ],
)
def test_lines_stay_where_they_are(rest: str, after: str) -> None:
    before = DECORATOR.format(rest) + USE
    text = inline_mixin_bases(before)
    assert after in text and text.count("\n") == before.count("\n")


def test_surgery_is_left_open(tmp_path: Path) -> None:
    source = (
        "from torch import nn\n\nclass M(nn.Module):\n    def forward(self, x):\n        self.__class__ = nn.Module\n        return x\n"
    )
    _, holes = rewrite_snippet(tmp_path, source)
    assert any("__class__ is set" in hole.reason for hole in holes)
