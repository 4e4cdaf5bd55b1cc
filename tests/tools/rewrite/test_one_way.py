"""The rooms of the rewriter import one way: tables ← analysis ← rules ← assemble."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import migrate_agent.tools.rewrite

FOLDER = Path(migrate_agent.tools.rewrite.__file__).parent
ROOMS = ("tables", "analysis", "rules", "assemble")
IMPORT = re.compile(r"^\s*(?:from|import) migrate_agent\.tools\.rewrite(?:\.(\w+))?", re.MULTILINE)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_from_itself_and_the_rooms_before_it(room: str) -> None:
    allowed = ROOMS[: ROOMS.index(room) + 1]
    files = sorted((FOLDER / room).rglob("*.py"))
    imports = {(str(file.relative_to(FOLDER)), name) for file in files for name in IMPORT.findall(file.read_text(encoding="utf-8"))}
    assert files
    assert {(file, name) for file, name in imports if name not in allowed} == set()
