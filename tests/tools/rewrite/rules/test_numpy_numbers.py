"""Numbers of NumPy beside tensors are Python's, as torch takes them: in JAX they have dtypes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tools.types import Observed, Span
from tests.tools.rewrite.snippets import snippet_workspace, tidy

SOURCE = "import numpy as np\nimport torch\n\ndef f(x: torch.Tensor, n):\n    y = x + 1\n    y /= np.sqrt(n)\n    return y / np.sqrt(n)\n"


@pytest.mark.parametrize(
    ("kinds", "text"),
    [
        (("object:numpy.float64",), "y / float(np.sqrt(n))"),
        (("object:numpy.float64", "object:numpy.float32"), "y / float(np.sqrt(n))"),
        (("object:numpy.int64",), "y / int(np.sqrt(n))"),
        (("ndarray",), "y / np.sqrt(n)"),
        (("float", "object:numpy.float64"), "y / np.sqrt(n)"),
    ],
)
def test_numbers_beside_tensors(tmp_path: Path, kinds: tuple[str, ...], text: str) -> None:
    space = snippet_workspace(
        tmp_path, SOURCE, {"snippet.py": {Span(line, column, line, column + 10): Observed(kinds) for line, column in ((6, 9), (7, 15))}}
    )
    rewritten = "".join(statement.text for statement in space.statements("snippet.py"))
    assert tidy(rewritten).splitlines()[-2:] == [f"    {text.replace('/', '/=')}", f"    return {text}"]
