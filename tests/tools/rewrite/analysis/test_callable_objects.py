"""Objects of plain classes that are called: what their `__call__` needs is handed to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tests.tools.rewrite.snippets import snippet_workspace, tidy
from migrate_agent.tools.types import Observed, Span

SOURCE = """import torch
from torch import nn

class Factory:
    def __call__(self, d):
        raise NotImplementedError

class Linears(Factory):
    def __call__(self, d):
        return nn.Linear(d, d)

class Sizes:
    def __call__(self, d):
        return 2 * d

class Net(nn.Module):
    def __init__(self, make, d):
        super().__init__()
        self.layer = make(d)
"""


@pytest.mark.parametrize(("kind", "call"), [("Linears", "make(d, rngs=rngs)"), ("Sizes", "make(d)")])
def test_an_object_that_constructs_gets_rngs(tmp_path: Path, kind: str, call: str) -> None:
    line = next(number for number, text in enumerate(SOURCE.splitlines(), 1) if "make(d)" in text)
    span = Span(line, 21, line, 25)
    space = snippet_workspace(tmp_path, SOURCE, {"snippet.py": {span: Observed((f"object:snippet.{kind}",))}})
    text = tidy("".join(statement.text for statement in space.statements("snippet.py")))
    assert f"self.layer = {call}\n" in text
