"""The deterministic rewriter: torch source → Flax NNX source, or a hole with its reason."""

from __future__ import annotations

from migrate_agent.tools.rewrite.assemble.compose import compose, mentions
from migrate_agent.tools.rewrite.assemble.translate import Untranslatable, translate

__all__ = ["Untranslatable", "compose", "mentions", "translate"]
