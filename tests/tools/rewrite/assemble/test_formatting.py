"""Generated files are formatted as ruff formats them, whatever the configuration around them says."""

from __future__ import annotations

import pytest

from migrate_agent.tools.rewrite.assemble.formatting import format_python

IMPORTS = "import sys\nimport os\n\nprint(os, sys)\n"


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("m.py", IMPORTS, "import os\nimport sys\n\nprint(os, sys)\n"),
        ("pkg/__init__.py", IMPORTS, IMPORTS),  # the order of its imports may matter
        ("m.py", "x = ( 1,2 )\n", "x = (1, 2)\n"),
        ("m.py", "x = (\n", "x = (\n"),
        ("m.py", "", ""),
    ],
)
def test_format_python(path: str, text: str, expected: str) -> None:
    assert format_python({path: text}) == {path: expected}
