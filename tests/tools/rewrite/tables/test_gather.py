"""`gather`: torch lets the index be smaller than the input on other axes, and `take_along_axis` does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tests.tools.rewrite.snippets import snippet_workspace
from migrate_agent.tools.types import Observed, Span

SOURCE = "import torch\n\ndef f(x, i):\n{before}    return torch.gather(x, 1, {index})\n"


@pytest.mark.parametrize(
    ("before", "index", "text"),
    [
        ("", "i", "gather(x, 1, i)"),  # a caller may hand a smaller index
        ("    i = x.argsort(1)\n", "i", "jnp.take_along_axis(x, i, axis=1)"),
        ("", "x.argsort(1)", "jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1)"),
    ],
)
def test_gather(tmp_path: Path, before: str, index: str, text: str) -> None:
    source = SOURCE.format(before=before, index=index)
    seen = {}
    for number, line in enumerate(source.splitlines(), 1):
        for part, kind in (("x", Observed(("tensor",), ((2, 3),), ("float32",))), (index, Observed(("tensor",), ((2, 3),), ("int64",)))):
            start = line.find(f"gather({part}" if part == "x" else f"1, {part})") + (7 if part == "x" else 3)
            if "gather" in line:
                seen[Span(number, start, number, start + len(part))] = kind
        if (at := line.find("x.arg")) >= 0:
            seen[Span(number, at, number, at + 1)] = Observed(("tensor",), ((2, 3),), ("float32",))
    space = snippet_workspace(tmp_path, source, {"snippet.py": seen})
    assert text in "".join(statement.text for statement in space.statements("snippet.py"))
