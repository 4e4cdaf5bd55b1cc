"""Which ints of a source are never below zero, and how a padding by them is written."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from migrate_agent.tests.tools.rewrite.snippets import tidy
from migrate_agent.tools.rewrite.analysis.ranges.amounts import Amounts
from migrate_agent.tools.rewrite.assemble.workspace import Workspace
from migrate_agent.tools.types import Inventory, Observed, SourceFile, Span

CASES = [
    ("", "3", True),
    ("", "-1", False),
    ("", "True", False),
    ("", "x.shape[1]", True),
    ("", "x.size(-1) * 2 + len(x)", True),
    ("b, n, _ = x.shape", "n", True),
    ("b, n = x.shape[:2]", "n // 2", True),
    ("b, n, h = *x.shape[:2], self.heads", "h", True),
    ("b, n, h = *x.shape[:2], self.shift", "h", False),
    ("b, *n = x.shape", "n", False),
    ("m = self.heads\n    n = x.shape[1]\n    left = m - (n % m)", "left", True),
    ("n = x.shape[1]", "self.heads - n % self.heads", True),
    ("n = x.shape[1]", "self.heads - n", False),
    ("", "max(self.heads - x.shape[1], 0)", True),
    ("", "min(self.heads, x.shape[1])", True),
    ("", "min(self.heads, y)", False),
    ("", "self.pad", True),
    ("", "self.pad - self.pad // 2", True),
    ("", "self.heads - 1", True),
    ("", "self.heads * 2 - 1", False),
    ("", "self.shift", False),
    ("", "self.changed", False),
    ("", "self.other", False),
    ("", "y", False),
    ("", "y - y // 2", False),
    ("n = x.shape[0]\n    n -= 3", "n", False),
    ("n = n + 1", "n", False),
    ("for n in range(y): pass", "n", True),
    ("for n in y: pass", "n", False),
    ("", "self.heads if y else 0", True),
    ("", "self.heads if y else y", False),
]
CLASS = """
class Layer:
    def __init__(self, size, heads=4, dilation=1):
        self.heads = heads
        self.pad = (size - 1) * dilation
        self.shift = -size
        self.changed = size

    def resize(self, by):
        self.changed = by

    def forward(self, x, y):
        pass
"""


@pytest.mark.parametrize(("before", "expression", "is_amount"), CASES)
def test_amounts(before: str, expression: str, is_amount: bool) -> None:
    body = ast.parse(CLASS).body[0]
    assert isinstance(body, ast.ClassDef)
    function = ast.parse(f"def forward(self, x, y):\n    {before or 'pass'}\n    return {expression}\n").body[0]
    assert isinstance(function, ast.FunctionDef)
    returned = function.body[-1]
    assert isinstance(returned, ast.Return) and returned.value is not None
    cls = SimpleNamespace(node=body, methods={one.name: one for one in body.body if isinstance(one, ast.FunctionDef)})
    assert Amounts(function, cls).is_amount(returned.value) is is_amount  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("b, n = x.shape\n    return F.pad(x, (0, 4 - n % 4))", "jnp.pad(x, ((0, 0), (0, 4 - n % 4)))"),
        ("n = x.size(1)\n    return F.pad(x, [n, 0], value=1.0)", "jnp.pad(x, ((0, 0), (n, 0)), constant_values=1.0)"),
        ("return F.pad(x, (x.shape[1] if k else 0, 1))", "jnp.pad(x, ((0, 0), (x.shape[1] if k else 0, 1)))"),
        ("return F.pad(x, (0, k))", "pad(x, (0, k))"),
        ("return F.pad(x, (k, 0, 0, 0))", "pad(x, (k, 0, 0, 0))"),
        ("return F.pad(x, (x.shape[0], -1))", "pad(x, (x.shape[0], -1))"),
    ],
)
def test_padding(tmp_path: Path, source: str, text: str) -> None:
    given = f"import torch\nimport torch.nn.functional as F\n\ndef f(x: torch.Tensor, k: int):\n    {source}\n"
    (tmp_path / "snippet.py").write_text(given)
    file = SourceFile("snippet.py", "snippet", "snippet_jax.py", "snippet_jax", True)
    line = len(given.splitlines())
    column = given.splitlines()[-1].index("x,")
    seen = {"snippet.py": {Span(line, column, line, column + 1): Observed(("tensor",), ((2, 3),), ("float32",))}}
    space = Workspace(Inventory(tmp_path, (file,), (), style="plain"), seen)
    assert not space.rewritten("snippet.py").holes
    assert text in tidy("".join(statement.text for statement in space.statements("snippet.py")))


def test_a_padding_by_sizes_is_as_torchs() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    for k in range(4):
        expected = torch.nn.functional.pad(x, (k, 0, 0, x.shape[1] - k), value=1.0)
        np.testing.assert_array_equal(jnp.pad(x.numpy(), ((0, x.shape[1] - k), (k, 0)), constant_values=1.0), expected.numpy())
