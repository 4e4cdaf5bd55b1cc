"""Rows whose result hangs on what was observed of the arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tests.tools.rewrite.snippets import rewrite_snippet, snippet_workspace
from migrate_agent.tools.types import Observed, Span

TEXT = "import torch\n\ndef f(x):\n    return torch.as_strided(x, (2, 2), (1, 2))\n"


@pytest.mark.parametrize(("whole", "expected"), [(True, "as_strided(x, (2, 2), (1, 2))"), (False, "torch.as_strided(x, (2, 2), (1, 2))")])
def test_strides_follow_from_the_shape_of_whole_tensors_alone(tmp_path: Path, whole: bool, expected: str) -> None:
    seen = {"snippet.py": {Span(4, 28, 4, 29): Observed(("tensor",), ((3, 3),), ("float32",), whole)}}
    space = snippet_workspace(tmp_path, TEXT, seen)
    text = "".join(statement.text for statement in space.statements("snippet.py"))
    assert f"return {expected}" in text
    assert [hole.code for hole in space.rewritten("snippet.py").holes] == ([] if whole else ["unsupported"])


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("torch.randn_like(x)", "jax.random.normal(rngs(), x.shape, x.dtype)"),
        ("x.to(y, True, True, memory_format=torch.preserve_format)", "x.astype(y.dtype)"),
        ("torch.abs(x) + abs(y)", "absolute(x) + absolute(y)"),
        ("F.dropout(x, 0.3, training=True)", "dropout(x, 0.3, rngs=rngs)"),
        ("F.dropout(x, 0.3, training=False)", "x"),
        ("F.alpha_dropout(x, 0.3, training=True)", "alpha_dropout(x, 0.3, training=True, rngs=rngs)"),
        ("F.feature_alpha_dropout(x, 0.3, True)", "feature_alpha_dropout(x, 0.3, training=True, rngs=rngs)"),
        ("F.alpha_dropout(x, 0.3)", "x"),  # off where nobody says
    ],
)
def test_spellings(tmp_path: Path, call: str, expected: str) -> None:
    text, holes = rewrite_snippet(
        tmp_path, f"import torch\nimport torch.nn.functional as F\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n    return {call}\n"
    )
    assert not holes
    assert text.strip().endswith(f"return {expected}")


@pytest.mark.parametrize(
    ("shape", "dtype", "expected"),
    [
        ((3,), "float32", "x = y.astype(x.dtype)"),
        ((1,), "float32", "x = jnp.broadcast_to(y, x.shape).astype(x.dtype)"),
        ((3,), "float64", "x = y.astype(x.dtype)"),
    ],
)
def test_a_copy_of_what_has_the_same_shape(tmp_path: Path, shape: tuple[int, ...], dtype: str, expected: str) -> None:
    seen = {
        "snippet.py": {
            Span(4, 4, 4, 5): Observed(("tensor",), ((3,),), ("float32",)),
            Span(4, 12, 4, 13): Observed(("tensor",), (shape,), (dtype,)),
        }
    }
    space = snippet_workspace(tmp_path, "import torch\n\ndef f(x, y):\n    x.copy_(y)\n    return x\n", seen)
    assert expected in "".join(statement.text for statement in space.statements("snippet.py"))


CONVERTED = (
    "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, w):\n        super().__init__()\n"
    "        self.a = nn.Parameter(w).to(torch.float32)\n\n    def forward(self, x):\n        return x + self.a\n"
)


@pytest.mark.parametrize(
    ("kind", "expected"), [("parameter", "self.a = nnx.Param(w)\n"), ("tensor", "self.a = nnx.Param(w).astype(jnp.float32)\n")]
)
def test_a_parameter_that_is_converted_to_what_it_is(tmp_path: Path, kind: str, expected: str) -> None:
    seen = {
        "snippet.py": {
            Span(7, 17, 7, 50): Observed((kind,), ((3,),), ("float32",)),
            Span(5, 23, 5, 24): Observed(("tensor",), ((3,),), ("float32",)),
        }
    }
    space = snippet_workspace(tmp_path, CONVERTED, seen)
    text = "".join(statement.text for statement in space.statements("snippet.py"))
    assert expected in text and ("x + self.a[...]" in text) == (kind == "parameter")
