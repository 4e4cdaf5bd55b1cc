"""What is read out of source text for somebody who is to add an example."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from migrate_agent.agent.runs.class_text import example_table, is_called, is_interface, syntax_methods
from migrate_agent.agent.runs.state import NearestGuess
from migrate_agent.tools.types import Unit

CALLED = [
    ("class A(nn.Module):\n    def forward(self, x):\n        return x\n", True),
    ("class A(nn.Module):\n    def unfold(self, x):\n        return x\n", False),
    ("class A(torch.nn.Module, abc.ABC):\n    pass\n", False),
    ("class A(Base):\n    pass\n", True),
    ("class A(nn.ReLU):\n    pass\n", True),
    ("class A(nn.Module):\n    def forward(self, *x):\n        '''Derive from it.'''\n        pass\n", False),
    ("class A(nn.Module):\n    def forward(self, x):\n        raise NotImplementedError('derive')\n", False),
    ("class A(Base):\n    def forward(self, x):\n        raise NotImplementedError\n", True),
    ("x = 1\n", True),
]


@pytest.mark.parametrize(("source", "expected"), CALLED)
def test_whether_a_class_may_be_called(tmp_path: Path, source: str, expected: bool) -> None:
    (tmp_path / "a.py").write_text(source)
    assert is_called(tmp_path / "a.py", "A") == expected


def test_a_file_may_begin_with_a_mark_of_its_encoding(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("class A(nn.Module):\n    def forward(self, x):\n        return x\n", encoding="utf-8-sig")
    assert is_called(tmp_path / "a.py", "A") and not is_interface(tmp_path / "a.py", "A")


INTERFACES = [
    ("class A(nn.Module):\n    def score(self, x):\n        raise NotImplementedError\n", True),
    (
        "class B(nn.Module):\n    def score(self, x):\n        pass\nclass A(B):\n    def __init__(self):\n        super().__init__()\n    def rank(self, x): ...\n",
        True,
    ),
    ("class A(Elsewhere):\n    def score(self, x):\n        raise NotImplementedError\n", False),
    (
        "class A(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.n = n\n    def score(self, x):\n        pass\n",
        False,
    ),
    ("class A(nn.Module):\n    def score(self, x):\n        raise ValueError\n", False),
    ("class A(nn.Module):\n    pass\n", False),
    ("def A(x):\n    raise NotImplementedError\n", False),
    ("if X:\n    class A(B):\n        def f(self): ...\nelse:\n    class B(A):\n        def f(self): ...\n", False),
]


@pytest.mark.parametrize(("source", "expected"), INTERFACES)
def test_whether_a_class_is_an_interface(tmp_path: Path, source: str, expected: bool) -> None:
    (tmp_path / "a.py").write_text(source)
    assert is_interface(tmp_path / "a.py", "A") == expected


SYNTAX = [
    (
        "class A:\n    @property\n    def b(self): ...\n    @b.setter\n    def b(self, value): ...\n    def __len__(self): ...\n",
        {"b=", "__len__"},
    ),
    ("class A:\n    @property\n    def b(self): ...\n    def __repr__(self): ...\n    def c(self): ...\n", set()),
    ("def A(x):\n    return x\n", set()),
]


@pytest.mark.parametrize(("source", "expected"), SYNTAX)
def test_setters_and_what_syntax_calls(tmp_path: Path, source: str, expected: set[str]) -> None:
    (tmp_path / "a.py").write_text(source)
    assert syntax_methods(tmp_path / "a.py", "A") == expected


def test_an_example_table_holds_the_guess_that_came_furthest(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text("class Net(Module):\n    def __init__(self, width): ...\n    def forward(self, x, *, scale): ...\n")
    unit = Unit("net.py", "Net", "net_jax.py", "rewrite")
    rows = {
        None: {"init": "width=...", "call": "x=..., scale=..."},
        NearestGuess("'a'", "torch.randn(2), scale=3", "import types", "KeyError: 1"): {
            "setup": "import types",
            "init": "'a'",
            "call": "torch.randn(2), scale=3",
        },
        NearestGuess("64", "", "", "KeyError: 1"): {"init": "64", "call": "x=..., scale=..."},
    }
    for guess, expected in rows.items():
        assert tomllib.loads(example_table(file, unit, guess)) == {"example": [{"module": "net.py:Net", **expected}]}
