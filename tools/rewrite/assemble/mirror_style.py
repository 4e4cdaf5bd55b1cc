"""The style of a mirror that lies in a repository."""

from __future__ import annotations

from typing import Literal

from migrate_agent.tools.rewrite.tables.helpers import file_of, is_plain
from migrate_agent.tools.types import Inventory


def mirror_style(inventory: Inventory) -> Literal["plain", "close"]:
    """`close` where a file of helpers says so, as those of mirrors did before there were two styles; else `plain`."""
    files = {inventory.root / file_of(source) for source in inventory.files}
    texts = (file.read_text(encoding="utf-8") for file in sorted(files) if file.is_file())
    return "plain" if all(map(is_plain, texts)) else "close"
