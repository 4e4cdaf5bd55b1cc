"""Which lines of a class its examples run."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from migrate_agent.tools.harness.torch_side.line_coverage import MOST_NAMES, Lines

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


def missed(lines: Lines, cls: type) -> str:
    """As another process tells it, of what it was told."""
    told = lines.told(cls)
    other = Lines(lines.name, Path(lines.root))
    other.add(json.loads(json.dumps(told)))
    return other.missed(told["file"])


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
    lines = Lines("M", Path(made.__file__).parent)
    with lines:
        made.M().forward(1)
    extra, twice, zero = number("self.extra"), number("x * 2"), number("y = 0")
    assert missed(lines, made.M) == (
        f"no example runs the lines {extra}, {twice}-{twice + 1}, {zero} and the methods generate: nothing is said of them"
    )


def test_several_runs_count_together(made: Any) -> None:
    lines = Lines("M", Path(made.__file__).parent)
    with lines:
        made.M("b").forward(1, twice=True)
    with lines:
        made.M().forward(0)
        made.M().generate()
    assert missed(lines, made.M) == ""


def test_what_runs_outside_does_not_count(made: Any) -> None:
    lines = Lines("M", Path(made.__file__).parent)
    made.M("b").forward(1, twice=True)
    with lines:
        made.M().generate()
    made.M().forward(0)
    assert "the lines" in missed(lines, made.M)
    assert sys.gettrace() is None or "torch_lines" not in repr(sys.gettrace())


def test_a_class_without_source_says_nothing() -> None:
    assert missed(Lines("dict", Path("/nowhere")), dict) == ""


USED = """
import used.parts


def scaled(x, factor=None):
    if factor is not None:
        x = x * factor
    return x


class Part:
    @property
    def offset(self):
        return 1

    def forward(self, x, mask=None):
        if mask is not None:
            x = x * mask
            x = x + 1
        return [scaled(each) for each in (x, self.offset)]


class Never:
    def forward(self, x):
        return x


class M:
    def forward(self, x):
        return used.parts.halved(Part().forward(x)[0])
"""
PARTS = """
def halved(x, deep=False):
    if deep:
        return x / 4
    return x / 2
"""


def test_lines_of_what_a_class_uses_are_named_with_their_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "used").mkdir()
    (tmp_path / "used/model.py").write_text(USED)
    (tmp_path / "used/parts.py").write_text(PARTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    lines = Lines("M", tmp_path)
    made = importlib.import_module("used.model")
    with lines:
        made.M().forward(1)
    monkeypatch.delitem(sys.modules, "used")
    factor, mask = (next(index for index, line in enumerate(USED.splitlines(), 1) if text in line) for text in ("* factor", "* mask"))
    assert missed(lines, made.M) == (
        f"of what it uses, no example runs the lines {factor} of scaled, the lines {mask}-{mask + 1} of Part.forward, "
        "the lines 4 of halved (used/parts.py): nothing is said of them"
    )


def test_only_so_many_functions_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = "\n\ndef f{0}(x):\n    if x:\n        return 1\n    return 2\n"
    text = "".join(map(one.format, range(MOST_NAMES + 3)))
    calls = "".join(f"        f{number}(0)\n" for number in range(MOST_NAMES + 3))
    (tmp_path / "many.py").write_text(f"{text}\n\nclass M:\n    def forward(self):\n{calls}")
    monkeypatch.syspath_prepend(str(tmp_path))
    lines = Lines("M", tmp_path)
    made = importlib.import_module("many")
    with lines:
        made.M().forward()
    assert missed(lines, made.M).endswith(f"of f{MOST_NAMES - 1}, parts of 3 more functions: nothing is said of them")
