"""The documentation lists the operations that are used, with what a token needs for them."""

from __future__ import annotations

from pathlib import Path

from migrate_agent.agent.forge.operations import GITHUB, GITLAB

PAGE = (Path(__file__).parents[3] / "docs" / "pull-requests.md").read_text(encoding="utf-8")


def test_every_operation_stands_in_the_documentation() -> None:
    rows = [f"| `{each.method.upper()} {each.path}` | {each.use} | {each.fine} | {each.classic} |" for each in GITHUB]
    rows += [f"| `{each.method.upper()} {each.path}` | {each.use} |" for each in GITLAB]
    assert [row for row in rows if row not in PAGE] == []
