"""The input that shows a failure, as files, and how it is run again."""

from __future__ import annotations

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.results import Results, Scenario


def save(results: Results, scenario: Scenario, verdict: Verdict) -> None:
    """later"""
