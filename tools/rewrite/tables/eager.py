"""Operators whose result has a shape that depends on values: code that is never traced, such as a script's evaluation, may call NumPy's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from migrate_agent.tools.rewrite.tables.registry import Call

Eager = Callable[[Call], str]
"""Gives the template, or "" where it declines."""


def _nonzero(call: Call) -> str:
    if not call.given("as_tuple"):
        return "jnp.argwhere({input})"
    return {True: "jnp.nonzero({input})", False: "jnp.argwhere({input})"}.get(call.literal("as_tuple"), "")


def _unique(call: Call) -> str:
    """The template of `unique`. Which order torch gives without sorting is not said."""
    flags = [name for name in ("return_inverse", "return_counts") if call.given(name)]
    if any(not isinstance(call.literal(name), bool) for name in flags) or (call.given("sorted") and call.literal("sorted") is not True):
        return ""
    return "jnp.unique({input}, return_inverse={return_inverse}, return_counts={return_counts}, axis={dim})"


def _masked_select(call: Call) -> str:
    """The template of `masked_select`: torch broadcasts the two, an index does not."""
    facts = [call.observed(name) for name in ("input", "mask")]
    shapes = [fact.shapes if fact is not None else () for fact in facts]
    return "{input}[{mask}]" if all(len(one) == 1 for one in shapes) and shapes[0] == shapes[1] else ""


EAGER: Mapping[str, Eager] = {
    "torch.nonzero": _nonzero,
    "torch.argwhere": lambda call: "jnp.argwhere({input})",
    "torch.where": lambda call: "" if call.given("input") else "jnp.nonzero({condition})",
    "torch.unique": _unique,
    "torch.masked_select": _masked_select,
    "torch.bincount": lambda call: "jnp.bincount({input}, weights={weights}, minlength={minlength=0})",
}
