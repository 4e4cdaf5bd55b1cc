"""A method with a hole blocks those classes alone whose drafts name it; the others that share its class get an error in its place."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from migrate_agent.tools.record.instrument import Columns
from migrate_agent.tools.rewrite import compose
from migrate_agent.tools.rewrite.assemble.idle_methods import text_with_stubs
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Draft, Example, Hole, Observations, Observed, Span

SOURCE = """from torch import nn


class Base(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.size = size

    def load_all(self, states):
        \"\"\"Load them.\"\"\"
        self.load_some(states)
        self.load_state_dict(states)

    def load_some(self, states):
        self.load_state_dict(states)

    @property
    def twice(self):
        return 2 * self.size


class Alone(Base):
    def forward(self, x):
        return x * self.twice


class Loaded(Base):
    def __init__(self, size: int):
        super().__init__(size)
        self.load_all({})

    def forward(self, x):
        return x * self.size


class Asked(Base):
    def forward(self, x):
        getattr(self, "load_" + "some")({})
        return getattr(self, "load_some")({}) or x


class Own(nn.Module):
    def load_all(self, states):
        self.load_state_dict(states)

    def forward(self, x):
        return x


class Holder(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.own = Own()
        self.own.load_all({})
"""


def everything_ran() -> Observations:
    columns = Columns(SOURCE)
    calls = (node for node in ast.walk(ast.parse(SOURCE)) if isinstance(node, (ast.Call, ast.BinOp, ast.Attribute)))
    return {"model.py": {columns.span(node): Observed(("object:x.Y",)) for node in calls}}


def draft_of(folder: Path, name: str, call: str = "torch.ones(2)", method: str = "") -> Draft:
    (folder / "model.py").write_text(SOURCE)
    example = Example(f"model.py:{name}", "2", call, method=method)
    return compose(scan(folder), everything_ran(), [f"model.py:{name}"], examples=[example])


@pytest.mark.parametrize(
    ("name", "method", "lines"),
    [
        pytest.param("Alone", "", [], id="nothing names it"),
        pytest.param("Loaded", "", [12, 15], id="the constructor names it, and it another"),
        pytest.param("Asked", "", [15], id="a string names one of them"),
        pytest.param("Alone", "load_some", [15], id="an example calls it"),
        pytest.param("Own", "", [44], id="it is the unit's own"),
    ],
)
def test_holes_of_methods_that_a_draft_names_stay(tmp_path: Path, name: str, method: str, lines: list[int]) -> None:
    assert [hole.span.line for hole in draft_of(tmp_path, name, method=method).holes] == lines


def test_a_method_that_nothing_names_is_an_error_with_its_reason(tmp_path: Path) -> None:
    draft = draft_of(tmp_path, "Alone")
    (text,) = (text for path, text in draft.files.items() if path.endswith("model_jax.py"))
    base = next(node for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and node.name == "Base")
    bodies = {node.name: ast.unparse(node.body[-1]) for node in base.body if isinstance(node, ast.FunctionDef)}
    reason = "nn.Module.load_state_dict has no direct counterpart in NNX"
    assert bodies["load_all"] == f"raise NotImplementedError('load_all was not migrated: {reason}')"
    assert bodies["twice"] == "return 2 * self.size"
    assert f"model.py:12: Base.load_all is not migrated, an error once it is called: {reason}" in draft.notes


def test_a_default_that_reaches_out_is_none_in_a_stub() -> None:
    text = (
        "class A:\n    def load(self, path, how: str, module=pickle.load, size=SIZE, *, loader=pickle):\n        return loader.load(path)\n"
    )
    stub = text_with_stubs(text, {"load": Hole("m.py", Span(3, 8, 3, 20), "reaches-out", "pickle reaches out of the program", "pickle")})
    assert "def load(self, path, how, module=None, size=SIZE, *, loader=None):" in stub
