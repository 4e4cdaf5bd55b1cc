"""What each rule is: a rewrite of some kinds of nodes, with its own examples."""

from __future__ import annotations

from migrate_agent.tools.rewrite.rules.context import Context


class Rule:
    """One rewrite. Subclasses define `leave_<Node>(self, original, updated)` methods that return the new node, or `None` to decline.

    `KEEP` are sources that the rule must leave alone and `CHANGE` pairs of (before, after); tests are generated from them.
    """

    KEEP: tuple[str, ...] = ()
    CHANGE: tuple[tuple[str, str], ...] = ()
    PLAIN: tuple[tuple[str, str], ...] = ()
    """Pairs of (before, after) in plain style, where the rule does more."""
    CHECKS: tuple[str, ...] = ()
    """Handlers that only look: they run on a call even where an earlier rule has replaced it."""

    def __init__(self, context: Context) -> None:
        self.context = context
