"""Code that a repository shows: what is read of it, and that running it gives examples."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.record.programs import explored_files, run_files, run_snippets
from migrate_agent.tools.record.snippets import documented, needed_statements, snippets
from migrate_agent.tools.types import Limits

MODEL = '''\
import torch
from torch import nn

class Plain(nn.Module):
    """A layer.

    Example::

        >>> layer = Plain("3x4")
        >>> layer(torch.randn(5, 3)).shape
    """
    def __init__(self, spec):
        super().__init__()
        rows, columns = spec.split("x")
        self.fc = nn.Linear(int(rows), int(columns))
    def forward(self, x):
        return self.fc(x)

class Main(Plain): pass
class Read(Plain): pass
class Tested(Plain): pass

if __name__ == "__main__":
    net = Main("4x2")
    print(net.forward(torch.randn(2, 4)))
    open("there/is/no/such/file")
'''
README = """\
# Net
```python
import torch
from net import Read
model = Read("128x6")
y = model(torch.randn(1, 1024))
z = model(torch.randn(1, 128))
```
```bash
pip install net
```
"""
TEST = """\
import pytest, torch
from net import Tested

@pytest.fixture
def spec():
    return "7x2"

@pytest.mark.parametrize("batch", [3, 4])
def test_shape(spec, batch):
    assert Tested(spec)(torch.randn(batch, 7)).shape == (batch, 2)
"""


def test_what_a_repository_shows_becomes_examples(repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    # `net.forward(x)` by name is a call of the module.
    inventory = repository({"net.py": MODEL, "README.md": README, "test_net.py": TEST})
    pieces = snippets(inventory, [unit.id for unit in inventory.units])
    assert not any("open(" in piece.code for piece in pieces)
    recording = run_snippets(inventory, pieces, sandbox, tmp_path / "shown", Limits())
    assert {(example.unit, example.init) for example in recording.examples} == {
        ("net.py:Plain", "'3x4'"),
        ("net.py:Main", "'4x2'"),
        ("net.py:Read", "'128x6'"),
        ("net.py:Tested", "'7x2'"),
    }
    assert recording.errors == {}


def test_tests_and_scripts_are_run_only_when_asked_for_and_end_alone(repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    inventory = repository({"net.py": MODEL, "test_net.py": TEST, "other.py": "import net\n"})
    assert explored_files(inventory) == ("test_net.py", "net.py")
    recording = run_files(inventory, explored_files(inventory), sandbox, tmp_path / "explored", Limits())
    assert {example.unit for example in recording.examples} == {"net.py:Main", "net.py:Tested"}


PRETRAINED = """import urllib.request
import torch
from torch import nn

def load(model, where):
    source = where + "/a"
    weights = urllib.request.urlopen(
        source
    )
    return weights

class Net(nn.Module):
    def __init__(self, pretrained=False):
        super().__init__()
        self.fc = nn.Linear(2, 2)
        if pretrained:
            load(self, "file:///no/such/folder")
        self.size = self.missing if pretrained else 2
    def forward(self, x):
        return self.fc(x)
"""


def test_a_statement_that_asked_for_what_is_not_there_did_not_run(repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    readme = "```python\nfrom net import Net\nnet = Net(True)\n```\n"
    inventory = repository({"net.py": PRETRAINED, "README.md": readme})
    pieces = snippets(inventory, [unit.id for unit in inventory.units])
    recording = run_snippets(inventory, pieces, sandbox, tmp_path / "shown", Limits())
    lines = {span.line for span in recording.observations["net.py"]}
    assert {6, 16} <= lines and not {7, 8, 9, 10} & lines


NEEDED = {
    "n = 3\nm = 4\nnet = Net(n)\nfor batch in data: train(net, batch)\ny = net(x)\n": "n = 3\nnet = Net(n)\ny = net(x)",
    "import a, b\ndata = b.download()\nnet = Net(a.size)": "import a, b\nnet = Net(a.size)",
    "x = 1\nprint(x)": "",
    "assert Net(2)(x).shape == (1,)": "Net(2)(x).shape == (1,)",
}


@pytest.mark.parametrize("code", NEEDED)
def test_only_what_builds_and_calls_is_kept(code: str) -> None:
    assert ast.unparse(ast.Module(needed_statements(ast.parse(code).body, {"Net"}), [])) == NEEDED[code]


def test_calls_of_methods_of_what_was_built_are_kept() -> None:
    code = "net = Net(4)\nnet.load(path)\nassert net.sample(3, top=2).shape == (3, 4)\nother.sample(1)"
    kept = needed_statements(ast.parse(code).body, {"Net"}, {"sample"})
    assert ast.unparse(ast.Module(kept, [])) == "net = Net(4)\nnet.sample(3, top=2).shape == (3, 4)"


DOCUMENTED = {
    "Text.\n\n>>> a = 1\n>>> b = f(\n...     a)\n3\n": ["a = 1\nb = f(\n    a)\n"],
    "Text.\n```python\na = 1\n```\n": ["a = 1\n"],
    "Usage:\n    net = Net(3)\n    net(x)\n\nMore text.": ["net = Net(3)\nnet(x)\n\n"],
    "Nothing here.": [],
}


@pytest.mark.parametrize("text", DOCUMENTED)
def test_code_in_docstrings(text: str) -> None:
    assert list(documented(text)) == DOCUMENTED[text]
