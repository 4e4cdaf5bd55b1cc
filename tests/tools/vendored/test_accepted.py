"""What is copied into users' repositories passes the verifier's static checks there, whichever helpers and kernels a rewrite takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from migrate_agent.tools.rewrite.tables import helpers
from migrate_agent.tools.verify.checks.static import calls, constants, patches
from migrate_agent.tools.verify.evidence.parsed_source import parse


@pytest.mark.parametrize("find", [calls.find, constants.find, patches.find], ids=["calls", "constants", "patches"])
def test_every_helper_is_accepted(tmp_path: Path, find: Callable[..., Iterator[Any]]) -> None:
    (tmp_path / "nnx_layers.py").write_text(helpers.render(helpers.symbols()))
    source = parse(tmp_path, "nnx_layers.py")
    assert not source.error
    lines = (tmp_path / "nnx_layers.py").read_text().splitlines()
    assert [(found, lines[found[0] - 1]) for found in find(source)] == []
