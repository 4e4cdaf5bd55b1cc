"""The deterministic rewriter: PyTorch source → Flax NNX source. What no rule can rewrite is left as a hole, with its reason.

The rooms import one way: `tables` (what torch's names become) ← `analysis` (what the source says) ← `rules` (the rewrites of syntax) ←
`assemble` (the target files).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from migrate_agent.tools.rewrite.assemble.compose import compose, mentions
    from migrate_agent.tools.rewrite.assemble.torchax_wrapper import Unwrappable, wrapped, wrapper
    from migrate_agent.tools.rewrite.assemble.translate import Untranslatable, translate

__all__ = ["Untranslatable", "Unwrappable", "compose", "mentions", "translate", "wrapped", "wrapper"]
ROOMS = {"compose": "compose", "mentions": "compose", "Untranslatable": "translate", "translate": "translate"}
"""Name → the file of `assemble` that defines it; the others are in `torchax_wrapper`."""


def __getattr__(name: str) -> Any:
    """What the rooms above ask for, imported then: the verifier's jobs in the sandbox ask its tables alone."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.assemble.{ROOMS.get(name, 'torchax_wrapper')}"), name)
