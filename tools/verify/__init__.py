"""The verifier: finds out whether a rewrite is equivalent to its original. Fixed, and judged by nothing that a proposer can reach."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from migrate_agent.tools.verify.contract.settings import Performance, Portable
    from migrate_agent.tools.verify.verifier import Options, verify

__all__ = ["Options", "Performance", "Portable", "verify"]


def __getattr__(name: str) -> Any:
    """What the host asks for, imported then: the jobs of this room run in the sandbox without it."""
    from migrate_agent.tools.verify import verifier
    from migrate_agent.tools.verify.contract import settings

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(verifier if name in ("Options", "verify") else settings, name)
