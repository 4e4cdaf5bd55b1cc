"""Which tensors are made of lists that may be empty, and how such tensors are joined."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from migrate_agent.tests.tools.rewrite.snippets import snippet_workspace
from migrate_agent.tools.types import Observed, Span
from migrate_agent.tools.vendored.tensor_shape import cat

FORMS = [
    ("a = torch.tensor(np.array([np.sin(i * t) for i in range(n)])).float()", True),
    ("a = torch.tensor([[i, i] for i in range(n)]).to(y.device)", True),
    ("a = torch.stack([t * i for i in range(n)])", False),  # raises where there is nothing
    ("a = torch.tensor([[i, i] for i in range(3)])", False),
    ("a = torch.tensor([[i, i] for i in (1, n)])", False),
    ("a = torch.tensor([[i, i] for i in (1, 2) if i < n])", True),
    ("rows = []\n    for i in range(n):\n        rows.append([i, i])\n    a = torch.FloatTensor(rows)", True),
    ("rows = [[n, n]]\n    a = torch.FloatTensor(rows)", False),
    ("a = y * n", False),
    ("a = a.float()", False),
]


@pytest.mark.parametrize("shape", [(2, 2), (2,)])
@pytest.mark.parametrize(("before", "may_be_empty"), FORMS)
def test_a_part_that_may_be_empty(tmp_path: Path, before: str, may_be_empty: bool, shape: tuple[int, ...]) -> None:
    source = f"import numpy as np\nimport torch\n\ndef f(a, y, t, n):\n    {before}\n    return torch.cat([a, y])\n"
    last = len(source.splitlines())
    seen = {Span(last, at, last, at + 1): Observed(("tensor",), (shape,), ("float32",)) for at in (22, 25)}
    space = snippet_workspace(tmp_path, source, {"snippet.py": seen})
    text = "".join(statement.text for statement in space.statements("snippet.py"))
    assert ("return cat([a, y])" in text) is (may_be_empty and len(shape) > 1)
    assert ("jnp.concatenate([a, y])" in text) is not ("return cat([a, y])" in text)


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("shapes", [((0,), (2, 3)), ((2, 3), (0,), (2, 3)), ((0,), (0,)), ((0, 3), (2, 3))])
def test_cat_skips_empty_vectors_as_torch_does(shapes: tuple[tuple[int, ...], ...], dim: int) -> None:
    if dim and (0, 3) in shapes:
        return
    dtypes = ("float32", "int32", "int32")
    parts = [np.ones(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=False)]
    expected = torch.cat([torch.tensor(part) for part in parts], dim)
    joined = cat([jnp.array(part) for part in parts], dim)
    assert joined.shape == expected.shape and str(expected.dtype).endswith(str(joined.dtype))
    assert np.array_equal(joined, expected.numpy())
