"""Code that no example reached is rewritten where the kinds are sure, and else says which example to add."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tools.leftovers import find
from migrate_agent.tools.types import Observed, Span
from tests.tools.rewrite.snippets import snippet_workspace

MODULE = """import numpy as np
import torch
from collections import defaultdict
from torch import nn

TABLE = {}

class M(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.cache = {}
        self.fc = nn.Linear(d, d)

    def forward(self, x: torch.Tensor):
        return self.fc(x), None

"""
FORWARD = 14
"""The line of the module that ran."""
UNSURE = (
    ("    def g(self, y, i):\n        y[i] = 0\n        return y\n", "M.g was not exercised: add an [[example]] that calls g"),
    ("    def g(self, y, i):\n        y.w[i] += 1\n        return y\n", "whether y.w, which is written into, is a tensor"),
    ("    def g(self, y, i):\n        del y[i]\n        return y\n", "M.g was not exercised"),
    ("    def g(self, y, i):\n        return y.split(i)\n", "of which split is read"),
    ("    def g(self, y):\n        y.backward()\n        return y.grad\n", "of which backward is read"),
)
SURE = (
    ("    def g(self, y, i):\n        y['a'] = 0\n", "y['a'] = 0"),
    ("    def g(self, y: dict, i):\n        y[i] = 0\n", "y[i] = 0"),
    ("    def g(self, y: 'Dict[int, int]', i):\n        y[i] = 0\n", "y[i] = 0"),
    ("    def g(self, i):\n        y = defaultdict(list)\n        y[i] = 0\n        return y\n", "y[i] = 0"),
    ("    def g(self, i):\n        y = [0] * 3\n        y[i] = 0\n        return y\n", "y[i] = 0"),
    ("    def g(self, i):\n        y = np.zeros(3)\n        y[i] = 0\n        return y\n", "y[i] = 0"),
    ("    def g(self, i):\n        self.cache[i] = 0\n        TABLE[i] = 1\n", "TABLE[i] = 1"),
    ("    def g(self, y):\n        y.sort()\n        return y.split(), y.split(', ')\n", "y.split(', ')"),
    ("    def g(self, x, i):\n        y, _ = self(x)\n        y[i] = 0\n        return y\n", "y = y.at[i].set(0)"),
    (
        "    def g(self, x, i):\n        y = self.h(x)\n        y[i] = 0\n        return y\n\n    def h(self, x):\n        return self(x)[0]\n",
        "y.at[i].set(0)",
    ),
    (
        "    def g(self, x):\n        v, i = torch.topk(x, 3)\n        return v.unsqueeze(0), i.size(0)\n",
        "return jnp.expand_dims(v, 0), i.shape[0]",
    ),
    ("    @staticmethod\n    def g(x: torch.Tensor):\n        return x.dim()\n", "return x.ndim"),
    (
        "    @torch.no_grad()\n    def g(self, x, k):\n        y = self(x)[0]\n        y[y < k] = 0\n        return y\n",
        "y = masked_set(y, y < k, 0)",
    ),
)


def rewritten(folder: Path, source: str, *lines: int) -> tuple[str, int]:
    """The rewritten class, where something ran on these lines, and the number of holes in it."""
    observed = {"snippet.py": {Span(line, 0, line, 1): Observed(("tensor",)) for line in lines}}
    space = snippet_workspace(folder, source, observed)
    (statement,) = (one for one in space.statements("snippet.py") if "M" in one.defines)
    return statement.text, len(statement.holes)


@pytest.mark.parametrize(("method", "expected"), UNSURE)
def test_what_nobody_knows_is_a_stub(method: str, expected: str, tmp_path: Path) -> None:
    text, holes = rewritten(tmp_path, MODULE + method, FORWARD)
    assert expected in text
    assert text.count("raise NotImplementedError") == 1
    assert holes == 0


@pytest.mark.parametrize(("method", "expected"), SURE)
def test_what_is_sure_is_rewritten(method: str, expected: str, tmp_path: Path) -> None:
    text, holes = rewritten(tmp_path, MODULE + method, FORWARD)
    assert expected in text
    assert "raise NotImplementedError" not in text
    assert holes == 0
    heading = (
        "import numpy as np\nimport jax\nimport jax.numpy as jnp\nfrom collections import defaultdict\nfrom flax import nnx\nTABLE = {}\n"
    )
    assert [one for one in find({"m.py": heading + text}) if "not defined" not in one.what] == []


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("if mode == 'a':", "this part of M.g was not exercised: add an [[example]] for which `mode == 'a'` holds"),
        ("for i in range(mode):", "add an [[example]] for which `range(mode)` is not empty"),
        ("while mode > 0:", "add an [[example]] for which `mode > 0` holds"),
    ],
)
def test_a_block_that_did_not_run_says_when_it_does(head: str, expected: str, tmp_path: Path) -> None:
    method = f"    def g(self, y, i, mode):\n        {head}\n            y[i] = 0\n        return y\n"
    ran = MODULE.count("\n") + 2
    text, holes = rewritten(tmp_path, MODULE + method, FORWARD, ran, ran + 2)
    assert expected in text.replace("\\'", "'")
    assert holes == 0


def test_what_ran_is_left_to_the_other_rules(tmp_path: Path) -> None:
    method = "    def g(self, y, i):\n        y[i] = 0\n        return y\n"
    text, _ = rewritten(tmp_path, MODULE + method, FORWARD, MODULE.count("\n") + 2)
    assert "NotImplementedError" not in text
