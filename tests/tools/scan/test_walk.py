"""Which files belong to the repository, and how they are read."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from migrate_agent.tools.scan.walk import SourceError, Sources, mirror_files, python_files, read_source

Write = Callable[[Mapping[str, str | bytes]], Path]


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("files", "kept"),
    [
        (["model.py", "pkg/a.py", "notes.txt"], ["model.py", "pkg/a.py"]),
        ([".hidden/a.py", "pkg/.cache/b.py", "model.py"], ["model.py"]),
        (["venv/pyvenv.cfg", "venv/lib/x.py", "env/model.py"], ["env/model.py"]),
        (["build/lib/pkg/a.py", "pkg/a.py"], ["pkg/a.py"]),
        (["pkg/build/__init__.py", "pkg/build/a.py"], ["pkg/build/__init__.py", "pkg/build/a.py"]),
        (["lib/site-packages/torch/a.py", "node_modules/x.py", "a.egg-info/x.py", "__pycache__/x.py", "m.py"], ["m.py"]),
        (["model.py", "model_jax.py", "pkg/a.py", "pkg_jax/a.py", "src/q/a.py", "src/q_jax/a.py"], ["model.py", "pkg/a.py", "src/q/a.py"]),
        (["only_jax.py", "flow_jax/a.py"], ["flow_jax/a.py", "only_jax.py"]),
        (["model.py", "nnx_layers_jax.py", "src/nnx_layers_jax.py"], ["model.py"]),
    ],
)
def test_own_files(write: Write, files: list[str], kept: list[str]) -> None:
    assert list(python_files(write(dict.fromkeys(files, "")))) == kept


@pytest.mark.parametrize(
    ("path", "document", "mirror"),
    [
        (".migrate/files.json", '{"gone_jax.py": "", "timm_jax/drop.py": "", "model.py": ""}', ["gone_jax.py", "timm_jax/drop.py"]),
        (
            ".migrate/verified/gone.py/A.json",
            '{"target": "gone_jax.py", "port": {"timm_jax/drop.py:Drop": ""}}',
            ["gone_jax.py", "timm_jax/drop.py"],
        ),
        (".migrate/files.json", "[not json", []),
        (".migrate/verified/gone.py/A.json", '{"target": 1}', []),
    ],
)
def test_files_that_a_run_wrote(write: Write, path: str, document: str, mirror: list[str]) -> None:
    files = ["gone_jax.py", "model.py", "timm_jax/drop.py"]
    root = write({**dict.fromkeys(files, ""), path: document})
    assert list(mirror_files(root)) == mirror
    assert list(python_files(root)) == [file for file in files if file not in mirror]


@pytest.mark.parametrize(
    ("exclude", "kept"),
    [
        (["pkg/sub"], ["model.py", "pkg/a.py"]),
        (["./model.py", "pkg/a.py"], ["pkg/sub/b.py"]),
        (["*/b.py"], ["model.py", "pkg/a.py"]),
        (["pkg*"], ["model.py"]),
        (["pk"], ["model.py", "pkg/a.py", "pkg/sub/b.py"]),
        (["."], []),
    ],
)
def test_excluded(write: Write, exclude: list[str], kept: list[str]) -> None:
    root = write({"model.py": "", "pkg/a.py": "", "pkg/sub/b.py": ""})
    assert list(python_files(root, exclude)) == kept


def test_git_tracked_files_only(write: Write) -> None:
    root = write({"model.py": "", "scratch.py": "", "gone.py": "", "größe/netz.py": ""})
    git(root, "init", "-q")
    git(root, "add", "model.py", "gone.py", "größe/netz.py")
    (root / "gone.py").unlink()
    assert python_files(root) == ("größe/netz.py", "model.py")


def test_git_tracks_nothing(write: Write) -> None:
    root = write({"model.py": "", "inner/a.py": ""})
    git(root, "init", "-q")
    assert python_files(root) == ()
    assert python_files(root / "inner") == ("a.py",), "an untracked folder in someone else's work tree is read from disk"


def test_the_repository_s_own_git_programs_do_not_run(write: Write) -> None:
    root = write({"model.py": ""})
    git(root, "init", "-q")
    git(root, "add", "model.py")
    git(root, "config", "core.fsmonitor", f"touch {root}/ran; false")
    assert python_files(root) == ("model.py",)
    assert not (root / "ran").exists()


def test_links_out_of_the_repository_are_not_read(write: Write) -> None:
    root = write({"repo/model.py": "", "secret.py": "KEY = 1"})
    (root / "repo" / "link.py").symlink_to(root / "secret.py")
    (root / "repo" / "alias.py").symlink_to(root / "repo" / "model.py")
    assert python_files(root / "repo") == ("alias.py", "model.py")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"x = 1\r\ny = 2\r\n", "x = 1\ny = 2\n"),
        (b"\xef\xbb\xbfx = 1\n", "x = 1\n"),
        ("# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"), "# -*- coding: latin-1 -*-\nx = 'é'\n"),
    ],
)
def test_read_source(write: Write, data: bytes, text: str) -> None:
    root = write({"a.py": data})
    assert Sources(root, ("a.py",))["a.py"] == text


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"x = 1\ny = '\xff'\n", "line 2: cannot decode byte 0xff as utf-8"),
        (b"# coding: klingon\n", "line 1: unknown encoding"),
    ],
)
def test_what_is_no_text(write: Write, data: bytes, message: str) -> None:
    path = write({"a.py": data}) / "a.py"
    with pytest.raises(SourceError, match=message):
        read_source(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be read: No such file"):
        read_source(tmp_path / "none.py")
