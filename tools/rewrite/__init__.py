"""The deterministic rewriter: PyTorch source → Flax NNX source. What no rule can rewrite is left as a hole, with its reason.

The rooms import one way: `tables` (what torch's names become) ← `analysis` (what the source says) ← `rules` (the rewrites of syntax) ←
`assemble` (the target files).
"""

from __future__ import annotations

from migrate_agent.tools.rewrite.assemble.compose import compose, mentions
from migrate_agent.tools.rewrite.assemble.torchax_wrapper import Unwrappable, wrapped, wrapper
from migrate_agent.tools.rewrite.assemble.translate import Untranslatable, translate

__all__ = ["Untranslatable", "Unwrappable", "compose", "mentions", "translate", "wrapped", "wrapper"]
