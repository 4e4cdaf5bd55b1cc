"""The deterministic rewriter: PyTorch source → Flax NNX source. What no rule can rewrite is left as a hole, with its reason.

The rooms import one way: `tables` (what torch's names become) ← `analysis` (what the source says) ← `rules` (the rewrites of syntax) ←
`assemble` (the target files).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from migrate_agent.tools.rewrite.assemble.compose import compose, mentions
    from migrate_agent.tools.rewrite.assemble.torchax_wrapper import Unwrappable, wrapped, wrapper
    from migrate_agent.tools.rewrite.assemble.translate import Untranslatable, translate

__all__ = ["Untranslatable", "Unwrappable", "compose", "mentions", "translate", "wrapped", "wrapper"]


def __getattr__(name: str) -> Any:
    """What the rooms above ask for, imported then: the verifier's jobs in the sandbox ask its tables alone."""
    from migrate_agent.tools.rewrite.assemble import compose, torchax_wrapper, translate

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return next(getattr(module, name) for module in (compose, torchax_wrapper, translate) if hasattr(module, name))
