"""The verifier: finds out whether a rewrite is equivalent to its original. Fixed, and judged by nothing that a proposer can reach."""

from __future__ import annotations

from migrate_agent.tools.verify.contract.settings import Performance, Portable
from migrate_agent.tools.verify.verifier import Options, verify

__all__ = ["Options", "Performance", "Portable", "verify"]
