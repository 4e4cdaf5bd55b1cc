"""The page about programs shows the rows as they are."""

from pathlib import Path

from migrate_agent.tools.programs.tables.page import BEGIN, END, page

PAGE = Path(__file__).parents[3] / "docs" / "programs.md"


def test_page_holds_the_rows() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text[text.index(BEGIN) : text.index(END) + len(END)] == page()
