"""Which values are positions along an axis."""

from __future__ import annotations

import ast
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from migrate_agent.tests.tools.rewrite.snippets import rewrite_snippet
from migrate_agent.tools.rewrite.analysis.ranges.positions import gives_positions

CASES = [
    ("i = x.argmax(1)", "i", True),
    ("i = torch.argmin(x, dim=-1)\n    i = i.view(-1)", "i.flatten()", True),
    ("v, i = x.topk(2)", "i[:, 0]", True),
    ("v, i = x.topk(2)", "v", False),
    ("i = x.max(1)[1]", "i", True),
    ("_, i = torch.max(x, dim=1)", "i", True),
    ("_, i = torch.max(x, -1)", "i", True),
    ("i = x.max(y)[1]", "i", False),
    ("i = x.sort().indices", "i", True),
    ("i = y", "i", False),
    ("y = y.view(-1)", "y", False),
    ("i = x.argmax(1)\n    i = i + 1", "i", False),
    ("i = x.argmax(1)\n    i += 1", "i", False),
    ("for i in x.argmax(1):\n        pass", "i", False),
]


@pytest.mark.parametrize(("before", "expression", "are_positions"), CASES)
def test_positions(before: str, expression: str, are_positions: bool) -> None:
    function = ast.parse(f"def f(x, y):\n    {before}\n    return {expression}\n").body[0]
    assert isinstance(function, ast.FunctionDef)
    returned = function.body[-1]
    assert isinstance(returned, ast.Return) and returned.value is not None
    assert gives_positions(function, returned.value) is are_positions


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("i = x.argmin(1)\n    return torch.bincount(i, minlength=n)", "jnp.bincount(i, length=n)"),
        (
            "return torch.bincount(x.argmax(1).view(-1), w, minlength=8)",
            "jnp.bincount(jnp.argmax(x, axis=1).reshape(-1), weights=w, length=8)",
        ),
        ("return torch.bincount(x.argmax(1))", ""),
        ("return torch.bincount(w, minlength=n)", ""),
    ],
)
def test_bincount(tmp_path: Path, source: str, text: str) -> None:
    given = f"import torch\n\ndef f(x: torch.Tensor, w: torch.Tensor, n: int):\n    {source}\n"
    rewritten, holes = rewrite_snippet(tmp_path, given)
    assert (text in rewritten and not holes) if text else [hole.code for hole in holes] == ["dynamic-shape"]


def test_bincount_counts_as_torch_does() -> None:
    x = np.random.default_rng(0).standard_normal((20, 7)).astype(np.float32)
    expected = torch.bincount(torch.from_numpy(x).argmin(1), minlength=7)
    np.testing.assert_array_equal(jnp.bincount(jnp.argmin(x, axis=1), length=7), expected.numpy())
