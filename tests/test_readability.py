"""The house stays one that people can live in: no import circles, no crowded folders, names that say something, comments that say why."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from migrate_agent.evals.bench.readability import ROOMS, ROOT, VAGUE, circles, comment_lines, local_names, product_files

CROWDED = {"tools/vendored": "one file a helper; their names tell", "tools/rewrite/tables/ops": "one file a family of operators"}
"""Folders that may hold more files than `MOST_FILES`, and why."""
MOST_FILES = 30
VAGUE_SHARE = 0.01
COMMENTS = 15.0
"""At least so many comments for 1,000 lines, where behaviour cannot be understood without its reasons."""


def test_no_modules_import_each_other() -> None:
    assert circles(product_files()) == []


def test_no_folder_is_crowded() -> None:
    counts = Counter(file.parent.relative_to(ROOT).as_posix() for file in product_files())
    assert {folder: count for folder, count in counts.items() if count > MOST_FILES and folder not in CROWDED} == {}


def test_names_say_something() -> None:
    names = [row for file in product_files() for row in local_names(file)]
    vague = [row for row in names if row.name in VAGUE]
    assert len(vague) < VAGUE_SHARE * len(names), "\n".join(f"{row.path}:{row.line} {row.function}: {row.name}" for row in vague[:40])


@pytest.mark.parametrize("room", ["tools/verify", "tools/rewrite"])
def test_comments_say_why(room: str) -> None:
    files = product_files([room])
    lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
    assert 1000 * sum(map(comment_lines, files)) / lines >= COMMENTS


def test_every_room_is_measured() -> None:
    folders = {path.parent.relative_to(ROOT).parts[0] for path in ROOT.glob("*/__init__.py")}
    assert folders == set(ROOMS)


def test_what_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("migrate_agent.evals.bench.readability.ROOT", tmp_path)
    file = tmp_path / "m.py"
    file.write_text("# why\nclass C:\n    def f(self, place, x=1):  # noqa\n        found = [y for y in x]\n        def g(kept): pass\n")
    assert [(row.function, row.name) for row in local_names(file)] == [
        ("C.f", "place"),
        ("C.f", "x"),
        ("C.f", "found"),
        ("C.f", "y"),
        ("C.f.g", "kept"),
    ]
    assert comment_lines(file) == 1
