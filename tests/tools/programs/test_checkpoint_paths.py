"""A checkpoint of the rewrite is a folder: scripts that ask for a file there ask whether it exists."""

from __future__ import annotations

import libcst as cst
import pytest

from migrate_agent.tools.programs.rewrite.checkpoint_paths import asks_existence, checkpoint_paths
from migrate_agent.tools.programs.rewrite.names import Imports

SCRIPT = """
import os
import torch
from pathlib import Path

state = torch.load(args.resume, map_location="cpu")
torch.save(state, Path(folder) / "last.pt")
torch.save(f=best, obj=state)
"""


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("os.path.isfile(args.resume)", "os.path.exists(args.resume)"),
        ("os.path.isfile(best)", "os.path.exists(best)"),
        ('(Path(folder) / "last.pt").is_file()', '(Path(folder) / "last.pt").exists()'),
        ("best.is_file()", "best.exists()"),
        ("os.path.isfile(state)", None),
        ("os.path.isfile(args.data)", None),
        ("labels.is_file()", None),
        ("os.path.isdir(best)", None),
    ],
)
def test_what_asks_for_a_file_asks_whether_it_exists(asked: str, expected: str | None) -> None:
    imports = Imports(SCRIPT)
    call = cst.ensure_type(cst.parse_expression(asked), cst.Call)
    found = asks_existence(call, call, imports.of(call.func), checkpoint_paths(cst.parse_module(SCRIPT), imports))
    assert (found and cst.Module([]).code_for_node(found)) == expected
