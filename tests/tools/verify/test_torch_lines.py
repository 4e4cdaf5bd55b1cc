"""Which lines of a class its examples run."""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from migrate_agent.tools.verify.torch_lines import Lines

BRANCHES = """
class M:
    "Text."

    def __init__(self, mode="a"):
        self.mode = mode
        if mode == "b":
            self.extra = 1
        elif mode != "a":
            raise ValueError(mode)

    def forward(self, x, twice=False):
        if jit.is_scripting():
            x = 3
        if twice:
            x = x * 2
            x = x + 1
        try:
            y = 1 / x
        except ZeroDivisionError:
            y = 0
        return [v for v in (x, y)] if self.mode == "a" else y

    def generate(self):
        return self.forward(1)

    def todo(self):
        raise NotImplementedError

    def extra_repr(self):
        return "M"
"""
LINES = BRANCHES.splitlines()


def number(text: str) -> int:
    """The line of the class that holds this text."""
    return next(index for index, line in enumerate(LINES, 1) if text in line)


@pytest.fixture
def made(tmp_path: Path) -> Any:
    """The module that holds the class."""
    path = tmp_path / "branches.py"
    path.write_text(
        textwrap.dedent(BRANCHES).replace("jit.is_scripting()", "is_scripting()") + "\n\ndef is_scripting():\n    return False\n"
    )
    spec = importlib.util.spec_from_file_location("branches", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["branches"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["branches"]


def test_lines_and_methods_that_never_run_are_named(made: Any) -> None:
    lines = Lines("M")
    with lines:
        made.M().forward(1)
    extra, twice, zero = number("self.extra"), number("x * 2"), number("y = 0")
    assert lines.missed(made.M) == (
        f"no example runs the lines {extra}, {twice}-{twice + 1}, {zero} and the methods generate: nothing is said of them"
    )


def test_several_runs_count_together(made: Any) -> None:
    lines = Lines("M")
    with lines:
        made.M("b").forward(1, twice=True)
    with lines:
        made.M().forward(0)
        made.M().generate()
    assert lines.missed(made.M) == ""


def test_what_runs_outside_does_not_count(made: Any) -> None:
    lines = Lines("M")
    made.M("b").forward(1, twice=True)
    with lines:
        made.M().generate()
    made.M().forward(0)
    assert "the lines" in lines.missed(made.M)
    assert sys.gettrace() is None or "torch_lines" not in repr(sys.gettrace())


def test_a_class_without_source_says_nothing() -> None:
    assert Lines("dict").missed(dict) == ""
