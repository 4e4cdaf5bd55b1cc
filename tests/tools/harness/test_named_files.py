"""Files that examples name come along."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tools.harness.named_files import lay, paths_in, texts_of


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        ("'config/net.cfg', width=3", ["config/net.cfg"]),
        ("Config(path='a.json'), names=['b.txt']", ["a.json", "b.txt"]),
        ("'mean', '/etc/passwd.txt', '../out.cfg', 'net.py', 'two\\nlines.txt'", []),
        ("(", []),
    ],
)
def test_paths_that_a_text_names(init: str, expected: list[str]) -> None:
    assert sorted(paths_in(texts_of(init, ""))) == expected


def test_files_are_copied_and_what_is_there_stays(tmp_path: Path) -> None:
    first, second, target = (tmp_path / name for name in ("first", "second", "target"))
    for folder in (first, second, target):
        folder.mkdir()
    (second / "a").mkdir()
    (second / "a" / "b.cfg").write_text("second")
    (second / "own.cfg").write_text("second")
    (target / "own.cfg").write_text("target")
    (first / "out.cfg").symlink_to(tmp_path / "outside.cfg")
    (tmp_path / "outside.cfg").write_text("outside")
    lay(iter(["a/b.cfg", "own.cfg", "out.cfg", "absent.cfg"]), (first, second), target)
    copied = {path.relative_to(target).as_posix(): path.read_text() for path in target.rglob("*") if path.is_file()}
    assert copied == {"a/b.cfg": "second", "own.cfg": "target"}
