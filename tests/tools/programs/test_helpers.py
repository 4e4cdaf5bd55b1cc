"""Each helper of training scripts runs alone, as it is copied into the target: with what it needs, and nothing of ours."""

from __future__ import annotations

import pytest

from migrate_agent.tools.discovery import modules_below
from migrate_agent.tools.rewrite.tables.helpers import render, symbols

FILES = {module.__name__.rpartition(".")[2] for module in modules_below("migrate_agent.tools.programs.vendored")}
NAMES = sorted(name for name, symbol in symbols().items() if symbol.position[0] in FILES)


@pytest.mark.parametrize("file", sorted(FILES))
def test_helpers_stand_alone(file: str) -> None:
    names = [name for name in NAMES if symbols()[name].position[0] == file]
    assert names
    for name in names:
        text = render([name])
        assert "migrate_agent" not in text and "import torch" not in text
        scope: dict[str, object] = {}
        exec(compile(text, name, "exec"), scope)
        assert name in scope
