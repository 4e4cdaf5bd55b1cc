"""The verifier: finds out whether a rewrite is equivalent to its original. Fixed, and judged by nothing that a proposer can reach."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from migrate_agent.tools.verify.contract.settings import Performance, Portable
    from migrate_agent.tools.verify.verifier import Options, verify

__all__ = ["Options", "Performance", "Portable", "verify"]


def __getattr__(name: str) -> Any:
    """What the host asks for, imported then: the jobs of this room run in the sandbox without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    place = "verifier" if name in ("Options", "verify") else "contract.settings"
    return getattr(import_module(f"{__name__}.{place}"), name)
