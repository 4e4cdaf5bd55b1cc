"""What travels to a node: folders as bytes, and paths below them as those of the copy."""

from __future__ import annotations

import os
from pathlib import Path
from types import MappingProxyType

import pytest

from migrate_agent.agent.cluster import node
from migrate_agent.agent.cluster.trees import dumps, loads, pack, unpacked


def test_folders_and_the_paths_below_them_travel(tmp_path: Path) -> None:
    here = tmp_path / "here"
    for name in ("pkg/a.py", "data.bin", ".git/config", "venv/pyvenv.cfg", "__pycache__/a.pyc"):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text(name)
    there = unpacked(pack(here), tmp_path / "home")
    assert unpacked(pack(here), tmp_path / "home") == there, "once for all processes"
    (here / "data.bin").write_text("changed")
    os.utime(there, (0, 0))
    later = unpacked(pack(here), tmp_path / "home")
    assert not there.exists() and (later / "data.bin").read_text() == "changed", "what is old is removed"
    there = later
    assert sorted(path.relative_to(there).as_posix() for path in there.rglob("*") if path.is_file()) == ["data.bin", "pkg/a.py"]
    value = {"below": here / "pkg" / "a.py", "tree": here, "elsewhere": Path("/etc/hosts"), "table": MappingProxyType({1: here})}
    moved = loads(dumps(value, [tmp_path / "other", here]), [Path("/x"), there])
    assert moved == {"below": there / "pkg" / "a.py", "tree": there, "elsewhere": Path("/etc/hosts"), "table": {1: there}}


def test_a_node_with_other_versions_is_refused() -> None:
    node.check_versions(node.versions_here(), "here")
    with pytest.raises(node.NodeDiffersError, match=r"^node there .* has torch .* and not 1\.0: give all nodes the environment"):
        node.check_versions({**node.versions_here(), "torch": "1.0"}, "there")
