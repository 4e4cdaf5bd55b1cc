"""Every rule leaves its KEEP alone and makes of its CHANGE what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tools.rewrite.rules.order import ORDER
from tests.tools.rewrite.snippets import rewrite_snippet, tidy

RULES = ORDER


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule_documents_itself(rule: type) -> None:
    assert rule.__doc__
    assert rule.KEEP  # type: ignore[attr-defined]


@pytest.mark.parametrize("source", [source for rule in RULES for source in rule.KEEP])
def test_keep(tmp_path: Path, source: str) -> None:
    text, holes = rewrite_snippet(tmp_path, source)
    assert text == tidy(source)
    assert not holes


@pytest.mark.parametrize(("before", "after"), [pair for rule in RULES for pair in rule.CHANGE])
def test_change(tmp_path: Path, before: str, after: str) -> None:
    text, holes = rewrite_snippet(tmp_path, before)
    assert text == tidy(after)
    assert not holes


@pytest.mark.parametrize(("before", "after"), [pair for rule in RULES for pair in rule.PLAIN])
def test_plain(tmp_path: Path, before: str, after: str) -> None:
    text, holes = rewrite_snippet(tmp_path, before, "plain")
    assert text == tidy(after)
    assert not holes
