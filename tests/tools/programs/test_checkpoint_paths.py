"""A checkpoint of the rewrite is a folder: scripts that ask for a file there ask whether it exists."""

from __future__ import annotations

import libcst as cst
import pytest

from migrate_agent.tools.programs.rewrite.checkpoint_paths import asks_existence, checkpoint_paths, takes_folder
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


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("os.remove(best)", "remove_checkpoint(best)"),
        ("os.unlink(old)", "remove_checkpoint(old)"),
        ("os.remove(os.path.join(folder, old[0]))", "remove_checkpoint(os.path.join(folder, old[0]))"),
        ("os.remove('log.txt')", None),
        ("best.unlink()", "remove_checkpoint(best)"),
        ("labels.unlink()", None),
        ("best.unlink(missing_ok=True)", None),
        ("shutil.copyfile(best, 'model_best.pt')", "copy_checkpoint(best, 'model_best.pt')"),
        ("shutil.copy(best, folder)", "copy_checkpoint(best, folder)"),
        ("shutil.copyfile(args.config, folder)", None),
        ("shutil.move(best, kept)", "move_checkpoint(best, kept)"),
        ("os.replace(best, kept)", "move_checkpoint(best, kept)"),
        ("best.rename(kept)", "move_checkpoint(best, kept)"),
        ("best.replace('a', 'b')", None),
    ],
)
def test_what_removes_and_copies_files_takes_folders(call: str, expected: str | None) -> None:
    text = f"import shutil\n{SCRIPT}"
    imports = Imports(text)
    node = cst.ensure_type(cst.parse_expression(call), cst.Call)
    found = takes_folder(node, node, imports.of(node.func), checkpoint_paths(cst.parse_module(text), imports))
    assert (found and cst.Module([]).code_for_node(found)) == expected


def test_a_script_without_checkpoints_keeps_what_removes_files() -> None:
    node = cst.ensure_type(cst.parse_expression("os.remove(old)"), cst.Call)
    assert takes_folder(node, node, "os.remove", frozenset()) is None
